// Parameters that are not trained, and parameters that two layers share.
#include "longhaul/binding/torch_resume_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

torch::nn::LinearImpl& layer(Trial& trial, size_t at) {
  return *trial.net[at]->as<torch::nn::Linear>();
}

void set_trained(torch::nn::Module& module, bool is_trained) {
  for (at::Tensor& parameter : module.parameters()) parameter.set_requires_grad(is_trained);
}

class TorchFrozenTest : public TorchResumeTest {
 protected:
  void expect_exact_and_silent(const Make& make, const Loop& loop = plain_loop) {
    const Warnings warnings;
    expect_exact(make, loop);
    EXPECT_THAT(warnings.seen(), IsEmpty());
  }

  // Its first layer is not trained; the optimizer has all parameters, or only those of the last layer.
  static std::unique_ptr<Trial> frozen(bool optimizer_has_all) {
    auto trial = std::make_unique<Trial>();
    set_trained(layer(*trial, 0), false);
    trial->optimizer = std::make_unique<torch::optim::AdamW>(
        optimizer_has_all ? trial->net->parameters() : layer(*trial, 2).parameters(),
        torch::optim::AdamWOptions(0.05).weight_decay(0.1));
    trial->bind();
    return trial;
  }

  // One layer in two places.
  static std::unique_ptr<Trial> shared() {
    auto trial = std::make_unique<Trial>();
    const torch::nn::Linear twice(4, 4);
    trial->net = torch::nn::Sequential(twice, torch::nn::Dropout(0.5), twice, torch::nn::Linear(4, 2));
    move_to_test_device(*trial->net);
    trial->optimizer = std::make_unique<torch::optim::Adam>(trial->net->parameters(), torch::optim::AdamOptions(0.05));
    trial->bind();
    return trial;
  }
};

TEST_F(TorchFrozenTest, ALayerThatIsNotTrainedStaysAsItIsAndTheRestIsExact) {
  for (const bool optimizer_has_all : {true, false}) {
    const auto make = [=] { return frozen(optimizer_has_all); };
    expect_exact_and_silent(make);
    const std::vector<at::Tensor> end = end_of(make, plain_loop, 5);
    const auto begin = make();
    EXPECT_TRUE(at::equal(end[0], layer(*begin, 0).weight)) << "the weight that is not trained";
    EXPECT_FALSE(at::equal(end[2], layer(*begin, 2).weight));
  }
}

// It may be another process's that made them: pretrained weights are in the checkpoint.
TEST_F(TorchFrozenTest, ALayerThatIsNotTrainedComesFromTheCheckpoint) {
  std::string saved;
  {
    const auto pretrained = frozen(/*optimizer_has_all=*/true);
    torch::NoGradGuard no_grad;
    layer(*pretrained, 0).weight.fill_(0.25);
    pretrained->start();
    pretrained->train(3);
    saved = pretrained->save(path_);
  }
  const auto trial = frozen(/*optimizer_has_all=*/true);
  trial->start(saved);
  EXPECT_TRUE(at::equal(layer(*trial, 0).weight, torch::full({8, 4}, 0.25, test_device())));
  EXPECT_FALSE(layer(*trial, 0).weight.requires_grad()) << "a restore is no reason to train it";
}

// A cut at that very step is named, as a restart that forgets it would be.
TEST_F(TorchFrozenTest, ALayerThatIsTrainedFromAStepOnIsExactWhereverItIsCut) {
  const Warnings warnings;
  expect_exact([] { return frozen(/*optimizer_has_all=*/true); },
               [](Trial& trial, int64_t first, int64_t last) {
                 for (int64_t i = first; i < last; ++i) {
                   set_trained(layer(trial, 0), i >= 6);
                   trial.train();
                 }
               });
  EXPECT_THAT(warnings.seen(), ElementsAre(HasSubstr("requires_grad of 0.weight: was false, is true")));
}

TEST_F(TorchFrozenTest, ALayerThatARestartForgetsToFreezeIsNamed) {
  std::string saved;
  {
    const auto trial = frozen(/*optimizer_has_all=*/true);
    trial->start();
    trial->train(3);
    saved = trial->save(path_);
  }
  const auto trial = frozen(/*optimizer_has_all=*/true);
  set_trained(layer(*trial, 0), true);
  trial->start(saved);
  const Warnings warnings;
  trial->train();
  EXPECT_THAT(warnings.seen(), ElementsAre(HasSubstr("requires_grad of 0.weight: was false, is true")));
}

TEST_F(TorchFrozenTest, ALayerInTwoPlacesIsExact) {
  expect_exact_and_silent(shared);
}

TEST_F(TorchFrozenTest, ALayerInTwoPlacesHasTwoNamesAndIsStillOneAfterARestore) {
  std::string saved;
  {
    const auto trial = shared();
    trial->start();
    trial->train(3);
    saved = trial->save(path_);
    for (const char* name : {"0.weight", "2.weight"}) {
      EXPECT_EQ(trial->session.run(std::string(name) + ":0").shape(), (Shape{4, 4})) << name;
    }
  }
  const auto trial = shared();
  trial->start(saved);
  EXPECT_TRUE(layer(*trial, 0).weight.is_same(layer(*trial, 2).weight));
  trial->train();
  EXPECT_TRUE(at::equal(layer(*trial, 0).weight, layer(*trial, 2).weight));
}

}  // namespace
}  // namespace longhaul
