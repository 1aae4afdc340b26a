// Averages of a module's weights: their values, their place in checkpoints, and their use in the module.
#include "longhaul/binding/module_average.h"

#include <map>
#include <thread>

#include "longhaul/binding/torch_resume_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Tensors = std::vector<at::Tensor>;

Tensors copies_of(const torch::nn::Module& module) {
  Tensors copies;
  for (const at::Tensor& parameter : module.parameters()) copies.push_back(parameter.detach().clone());
  return copies;
}

// A training that keeps an average, and whose loss depends on it.
struct Averaged : Trial {
  explicit Averaged(const ModuleAverageOptions& options) {
    net = torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::BatchNorm1d(8), torch::nn::Linear(8, 2));
    move_to_test_device(*net);
    optimizer = std::make_unique<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    average.emplace(*net, options);
    step = [this](const TorchStep&) {
      optimizer->zero_grad();
      const at::Tensor loss = loss_of(torch::randn({16, 4})) + distance() * 0.1;
      update(loss);
      average->update();
      return loss;
    };
    TorchTrainingOptions training_options;
    training_options.kept.keep("average", *average);
    bind(training_options);
  }
  at::Tensor distance() {
    at::Tensor sum = at::zeros({}, test_device());
    for (size_t i = 0; i < net->parameters().size(); ++i)
      sum = sum + (net->parameters()[i] - average->values()[i].second).square().sum();
    return sum;
  }
  std::optional<ModuleAverage> average;
};

class ModuleAverageTest : public TorchResumeTest {};

TEST_F(ModuleAverageTest, IsExponentialByItsDecay) {
  torch::nn::Linear net(1, 1);
  ModuleAverage average(*net, {.decay = 0.75});
  const torch::NoGradGuard no_grad;
  for (const double value : {1.0, 2.0, 4.0}) {
    net->weight.fill_(value);
    average.update();
  }
  EXPECT_EQ(average.values()[0].first, "weight");
  EXPECT_FLOAT_EQ(average.values()[0].second.item<float>(), (1 * 0.75 + 2 * 0.25) * 0.75 + 4 * 0.25);
  EXPECT_EQ(average.updates(), 3);
}

TEST_F(ModuleAverageTest, CountsAllUpdatesAlikeWithoutADecay) {
  torch::nn::Linear net(1, 1);
  ModuleAverage average(*net);
  const torch::NoGradGuard no_grad;
  for (const double value : {1.0, 2.0, 6.0}) {
    net->weight.fill_(value);
    average.update();
  }
  EXPECT_FLOAT_EQ(average.values()[0].second.item<float>(), 3);
}

TEST_F(ModuleAverageTest, TakesBuffersAsTheyAreUnlessTheyAreAveraged) {
  for (const bool averages : {false, true}) {
    torch::nn::BatchNorm1d norm(1);
    ModuleAverage average(*norm, {.averages_buffers = averages});
    const torch::NoGradGuard no_grad;
    for (const double value : {1.0, 2.0}) {
      norm->running_mean.fill_(value);
      norm->num_batches_tracked.fill_(static_cast<int64_t>(value));
      average.update();
    }
    std::map<std::string, double> values;
    for (const auto& [name, value] : average.values()) values[name] = value.item<double>();
    EXPECT_EQ(values["running_mean"], averages ? 1.5 : 2);
    EXPECT_EQ(values["num_batches_tracked"], 2);
  }
}

TEST_F(ModuleAverageTest, GoesOnBitForBit) {
  const Warnings warnings;
  expect_exact([] { return std::make_unique<Averaged>(ModuleAverageOptions{.decay = 0.9}); }, plain_loop);
  expect_exact([] { return std::make_unique<Averaged>(ModuleAverageOptions{.averages_buffers = true}); }, plain_loop);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

// With an evaluation and a checkpoint of the averaged weights' time.
TEST_F(ModuleAverageTest, IsInTheModuleForAWhileAndCheckpointsHaveTheTrainedWeights) {
  const Warnings warnings;
  Averaged trial({.decay = 0.9});
  trial.start();
  trial.train(3);
  const Tensors trained = copies_of(*trial.net);
  std::string saved;
  {
    const AveragedWeights weights(*trial.average);
    const Tensors averaged = copies_of(*trial.net);
    for (size_t i = 0; i < averaged.size(); ++i)
      EXPECT_TRUE(at::equal(averaged[i], trial.average->values()[i].second)) << i;
    EXPECT_FALSE(equal(averaged, trained));
    std::thread([&] { saved = trial.save(path_); }).join();
  }
  EXPECT_TRUE(equal(copies_of(*trial.net), trained));
  trial.train(3);
  Averaged restored({.decay = 0.9});
  EXPECT_EQ(restored.start(saved), 3);
  EXPECT_TRUE(equal(copies_of(*restored.net), trained));
  restored.train(3);
  EXPECT_TRUE(equal(copies_of(*restored.net), copies_of(*trial.net)));
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

TEST_F(ModuleAverageTest, LeavesTheModuleAfterAnException) {
  Averaged trial({.decay = 0.9});
  trial.start();
  trial.train(2);
  const Tensors trained = copies_of(*trial.net);
  EXPECT_THROW(
      {
        const AveragedWeights weights(*trial.average);
        throw std::runtime_error("the evaluation failed");
      },
      std::runtime_error);
  EXPECT_TRUE(equal(copies_of(*trial.net), trained));
  trial.train();
}

TEST_F(ModuleAverageTest, ARestoreWhileItIsInTheModuleRestoresTheTrainedWeights) {
  Averaged trial({.decay = 0.9});
  trial.start();
  trial.train(2);
  const Tensors trained = copies_of(*trial.net);
  const std::string saved = trial.save(path_);
  trial.train(2);
  {
    const AveragedWeights weights(*trial.average);
    trial.start(saved);
  }
  EXPECT_TRUE(equal(copies_of(*trial.net), trained));
}

TEST_F(ModuleAverageTest, AStepWhileItIsInTheModuleIsRefused) {
  Averaged trial({.decay = 0.9});
  trial.start();
  trial.train();
  const AveragedWeights weights(*trial.average);
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { trial.train(); }),
              AllOf(HasSubstr("0.weight has averaged weights"), HasSubstr("End the AveragedWeights")));
  EXPECT_THROW(trial.average->update(), FailedPreconditionError);
  EXPECT_THROW(AveragedWeights{*trial.average}, FailedPreconditionError);
}

TEST_F(ModuleAverageTest, MisuseIsRefused) {
  torch::nn::Linear net(1, 1);
  EXPECT_THAT(message_of<InvalidArgumentError>([&] { ModuleAverage(*net, {.decay = 1.5}); }),
              HasSubstr("decay is 1.5"));
  torch::nn::Sequential empty;
  EXPECT_THROW(ModuleAverage{*empty}, InvalidArgumentError);
  ModuleAverage average(*net), other(*net);
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { AveragedWeights{average}; }), HasSubstr("no average yet"));
  average.update();
  other.update();
  const AveragedWeights weights(average);
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { AveragedWeights{other}; }),
              HasSubstr("weight has the weights of another average"));
}

TEST_F(ModuleAverageTest, OfATrainingThatHadNoneStartsWithTheRestoredWeights) {
  const auto first = plain();
  first->start();
  first->train(4);
  const std::string saved = first->save(path_);
  const auto second = std::make_unique<Trial>();
  ModuleAverage average(*second->net, {.decay = 0.5});
  TorchTrainingOptions options;
  options.kept.keep("average", average);
  second->bind(options);
  const Warnings warnings;
  second->start(saved);
  EXPECT_THAT(warnings.seen(), ElementsAre(HasSubstr("lacks kept/average/")));
  average.update();
  EXPECT_TRUE(at::equal(average.values()[0].second, first->net->parameters()[0]));
}

}  // namespace
}  // namespace longhaul
