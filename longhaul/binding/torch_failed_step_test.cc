// What a step leaves that throws: either nothing at all, or nothing that may be saved.
#include <torch/nn/functional/batchnorm.h>

#include "longhaul/binding/torch_fixture.h"
#include "longhaul/binding/watches/change_watch.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

// A linear layer, trained by a step function that fails where a test says so.
struct FailingProgram {
  enum class At { kNowhere, kInput, kForward, kAfterUpdate, kAfterZeroing };

  explicit FailingProgram(const MakeOptimizer& make_optimizer = plain_sgd) {
    optimizer = make_optimizer(net->parameters());
    training = torch_training(Scope(graph), *net, *optimizer, [this] { return step(); });
    session.run(ops::global_variables_initializer(Scope(graph)));
  }

  torch::Tensor step() {
    optimizer->zero_grad();
    fail_at(At::kInput);
    const torch::Tensor loss = net->forward(torch::ones({3, at == At::kForward ? 7 : 4})).square().mean();
    loss.backward();
    optimizer->step();
    fail_at(At::kAfterUpdate);
    optimizer->zero_grad();
    fail_at(At::kAfterZeroing);
    return loss;
  }
  void fail_at(At place) const {
    if (at == place) throw OutOfRangeError("this is where it fails");
  }
  void fail(At place) {
    at = place;
    EXPECT_THROW(session.run(training.train_op), Error);
    at = At::kNowhere;
  }
  void train() { session.run(training.train_op); }
  void read() { session.run(training.model[0], {}, {.snapshot = true}); }

  torch::nn::Linear net{4, 2};
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  At at = At::kNowhere;
  Graph graph;
  TorchTraining training;
  DirectSession session{graph, {}};
};
using At = FailingProgram::At;

class EachFailingOptimizerTest : public ::testing::TestWithParam<OptimizerCase> {};

TEST_P(EachFailingOptimizerTest, AFailureBehindTheUpdateLeavesNothingToSave) {
  for (const int steps_before : {0, 2}) {
    FailingProgram program(GetParam().make);
    for (int i = 0; i < steps_before; ++i) program.train();
    program.fail(At::kAfterUpdate);
    EXPECT_THAT(message_of<FailedPreconditionError>([&] { program.read(); }), HasSubstr("a step failed after"));
  }
}

TEST_P(EachFailingOptimizerTest, AFailureBehindTheUpdateAndTheZeroingLeavesNothingToSave) {
  FailingProgram program(GetParam().make);
  program.train();
  program.fail(At::kAfterZeroing);
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { program.read(); }), HasSubstr("a step failed after"));
}

TEST_P(EachFailingOptimizerTest, GradientsThatWereOnlySetToZeroAreNoChange) {
  for (const At place : {At::kInput, At::kForward}) {
    FailingProgram program(GetParam().make);
    program.fail(place);
    program.train();
    program.train();
    program.fail(place);
    EXPECT_NO_THROW(program.read());
  }
}

INSTANTIATE_TEST_SUITE_P(, EachFailingOptimizerTest, ::testing::ValuesIn(optimizer_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(TorchFailedStep, AModuleThatAFailedStepHasTrainedCannotBeInitialised) {
  FailingProgram program;
  program.fail(At::kAfterUpdate);
  const Operation init = ops::global_variables_initializer(Scope(program.graph));
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { program.session.run(init); }),
              HasSubstr("its module has been trained since it was created"));
}

TEST(TorchFailedStep, WhatIsWrittenPastTheVersionCountersIsSeen) {
  at::Tensor mean = at::zeros({5}), variance = at::ones({5});
  ChangeWatch watch;
  watch.add(mean);
  watch.add(variance);
  watch.begin(false);
  EXPECT_FALSE(watch.changed());
  namespace F = torch::nn::functional;
  F::batch_norm(at::randn({6, 5}), mean, variance, F::BatchNormFuncOptions().training(true));
  EXPECT_TRUE(watch.changed());
  watch.begin(false);
  variance.data()[4].fill_(7);
  EXPECT_TRUE(watch.changed()) << "the last element";
}

TEST(TorchFailedStep, AGradientThatReachesFewElementsIsAChangeAllTheSame) {
  torch::nn::Linear net(64, 1);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  at::Tensor input = at::zeros({1, 64});
  input[0][5] = 1;
  ChangeWatch watch;
  watch.add(net->weight);
  for (int i = 0; i < 2; ++i) {
    watch.begin(false);
    net->forward(input).sum().backward();
    sgd.step();
    EXPECT_TRUE(watch.changed()) << i;
  }
}

}  // namespace
}  // namespace longhaul
