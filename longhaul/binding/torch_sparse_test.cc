// Bound modules whose gradients are of some rows: torch::nn::Embedding with sparse(true).
#include <torch/nn/modules/embedding.h>

#include "longhaul/binding/torch_resume_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Looks up rows of a table, some of them several times.
struct Lookup : Trial {
  explicit Lookup(const MakeOptimizer& make_optimizer, const TorchTrainingOptions& options = {},
                  bool with_optimizer = true) {
    torch::manual_seed(1);
    net = torch::nn::Sequential(torch::nn::Embedding(torch::nn::EmbeddingOptions(1000, 4).sparse(true)));
    optimizer = make_optimizer(net->parameters());
    step = [this](const TorchStep&) {
      optimizer->zero_grad();
      const torch::Tensor rows = net->forward(torch::randint(100, {32}, at::kLong));
      const torch::Tensor loss = update((rows - 1).square().mean());
      is_sparse = net->parameters()[0].grad().is_sparse();
      return loss;
    };
    bind(options, with_optimizer);
  }
  bool is_sparse = false;
};

class TorchSparseTest : public TorchFindingsTest {
 protected:
  static std::vector<OptimizerCase> cases() {
    using namespace torch::optim;
    return {optimizer_case<SGD>("Sgd", SGDOptions(0.1)),
            optimizer_case<Adagrad>("Adagrad", AdagradOptions(0.1).initial_accumulator_value(0.1))};
  }
  // With a checkpoint after each step.
  std::vector<std::string> warnings_with_checkpoints(const Make& make) {
    return warnings_of(make, [this](Trial& trial, int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        trial.train();
        trial.save(path_);
      }
    });
  }
};

TEST_F(TorchSparseTest, ATableGoesOnToTheBit) {
  for (const OptimizerCase& one : cases()) {
    SCOPED_TRACE(one.name);
    const Warnings warnings;
    expect_exact([&] { return std::make_unique<Lookup>(one.make); }, plain_loop);
    EXPECT_THAT(warnings.seen(), IsEmpty());
  }
}

TEST_F(TorchSparseTest, ATableIsTrainedByASparseGradient) {
  for (const OptimizerCase& one : cases()) {
    SCOPED_TRACE(one.name);
    Lookup trial(one.make);
    trial.start();
    const at::Tensor before = trial.net->parameters()[0].detach().clone();
    trial.train(2);
    const at::Tensor now = trial.net->parameters()[0].detach();
    EXPECT_TRUE(trial.is_sparse);
    EXPECT_FALSE(at::equal(now.narrow(0, 0, 100), before.narrow(0, 0, 100)));
    EXPECT_TRUE(at::equal(now.narrow(0, 100, 900), before.narrow(0, 100, 900))) << "rows that never come";
  }
}

TEST_F(TorchSparseTest, NothingIsSaidOfATableThatEachStepUpdates) {
  for (const OptimizerCase& one : cases()) {
    EXPECT_THAT(warnings_with_checkpoints([&] { return std::make_unique<Lookup>(one.make); }), IsEmpty()) << one.name;
  }
}

TEST_F(TorchSparseTest, GradientsThatAreGatheredAreNamed) {
  const auto make = [] {
    auto trial = std::make_unique<Lookup>(plain_sgd);
    trial->step = [trial = trial.get()](const TorchStep& step) {
      if (step.number % 4 == 0) trial->optimizer->zero_grad();
      const torch::Tensor loss = trial->net->forward(torch::full({1}, 7 + step.number, at::kLong)).square().sum();
      loss.backward();
      if (step.number % 4 == 3) trial->optimizer->step();
      return loss;
    };
    return trial;
  };
  EXPECT_THAT(warnings_with_checkpoints(make),
              ElementsAre(AllOf(HasSubstr("gradients were accumulated"), HasSubstr("0.weight"))));
}

// Zeros that somebody multiplied by zero are what zero_grad() leaves.
TEST_F(TorchSparseTest, GradientsThatAreAllZeroAreNotGathered) {
  const auto make = [] {
    auto trial = std::make_unique<Lookup>(plain_sgd);
    trial->step = [trial = trial.get()](const TorchStep& step) {
      const torch::Tensor loss = trial->net->forward(torch::full({1}, 7 + step.number, at::kLong)).square().sum();
      trial->update(loss);
      trial->net->parameters()[0].mutable_grad().mul_(0);
      return loss;
    };
    return trial;
  };
  EXPECT_THAT(warnings_with_checkpoints(make), IsEmpty());
}

TEST_F(TorchSparseTest, ATableWithoutItsOptimizerIsNamedThoughTheFirstRowHasNoGradient) {
  const auto make = [] {
    auto trial = std::make_unique<Lookup>(plain_sgd, TorchTrainingOptions{}, /*with_optimizer=*/false);
    trial->step = [trial = trial.get()](const TorchStep& step) {
      trial->optimizer->zero_grad();
      const torch::Tensor rows = trial->net->forward(torch::tensor({int64_t{3}, 7 + step.number}, at::kLong));
      return trial->update((rows * torch::tensor({0.f, 1.f}).unsqueeze(1)).square().sum());
    };
    return trial;
  };
  EXPECT_THAT(warnings_of(make),
              ElementsAre(HasSubstr("0.weight is trained by the step function, but no bound optimizer has it")));
}

TEST_F(TorchSparseTest, AMomentumThatIsSparseIsNamedAtTheSave) {
  Lookup trial([](const std::vector<torch::Tensor>& parameters) {
    return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(0.1).momentum(0.9));
  });
  trial.start();
  trial.save(path_);
  trial.train();
  EXPECT_THAT(message_of<InvalidArgumentError>([&] { trial.save(path_); }),
              AllOf(HasSubstr("0.weight/momentum_buffer cannot be saved in a checkpoint: its layout is Sparse"),
                    HasSubstr("Adagrad")));
}

TEST_F(TorchSparseTest, GradientsThatAreToBeSavedAreNamedAtTheSave) {
  Lookup trial(plain_sgd, {.gradients = true});
  trial.start();
  trial.train();
  EXPECT_THAT(message_of<InvalidArgumentError>([&] { trial.save(path_); }),
              HasSubstr("0.weight cannot be saved in a checkpoint: its layout is Sparse"));
  trial.optimizer->zero_grad();
  trial.save(path_);
}

}  // namespace
}  // namespace longhaul
