#include "longhaul/binding/loop/torch_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "longhaul/binding/torch_resume_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A program that makes its steps in its own loop.
class TorchLoopTest : public TorchResumeTest {
 protected:
  struct Looping : Trial {
    Looping() : loop(torch_loop(Scope(graph), *net, {optimizer.get()})) {
      init = ops::global_variables_initializer(Scope(graph));
      saver = std::make_unique<Saver>(SaverOptions{.graph = &graph});
      training = loop.training();
    }
    torch::Tensor body() {
      optimizer->zero_grad();
      return update(loss_of(torch::randn({16, 4})));
    }
    void make_steps(int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        loop.begin();
        loop.made(body());
      }
    }
    TorchLoop loop;
  };

  static std::vector<at::Tensor> parameters_of(Trial& trial) {
    std::vector<at::Tensor> all;
    for (const auto& parameter : trial.net->parameters()) all.push_back(parameter.detach().clone());
    return all;
  }
};

TEST_F(TorchLoopTest, MakesTheStepsOfAStepFunction) {
  Looping looping;
  looping.start();
  looping.loop.attach(looping.session);
  looping.make_steps(kSteps);
  EXPECT_EQ(looping.loop.step(), kSteps);
  EXPECT_EQ(looping.session.run(looping.training.global_step).item<int64_t>(), kSteps);
  EXPECT_TRUE(equal(parameters_of(looping), end_of(plain, plain_loop)));
}

TEST_F(TorchLoopTest, ASnapshotWaitsForTheEndOfTheStep) {
  Looping looping;
  looping.start();
  looping.loop.attach(looping.session);
  looping.loop.begin();
  std::thread saving([&] { looping.save(path_); });
  std::thread([&] {  // this one has the module's lock
    while (!looping.session.resources().gate().is_shut()) std::this_thread::yield();
  })
      .join();
  const torch::Tensor loss = looping.body();
  looping.loop.made(loss);
  saving.join();
  const auto made = parameters_of(looping);

  Looping again;
  EXPECT_EQ(again.start(path_ + "-1"), 1);
  EXPECT_TRUE(equal(parameters_of(again), made));
}

TEST_F(TorchLoopTest, ACancelledStepIsNoStep) {
  Looping looping;
  looping.start();
  looping.loop.attach(looping.session);
  looping.loop.begin();
  EXPECT_FALSE(looping.loop.changed());
  looping.loop.cancel();
  EXPECT_EQ(looping.save(path_), path_ + "-0");
}

TEST_F(TorchLoopTest, WhatAnAbandonedStepHasChangedIsNotSaved) {
  Looping looping;
  looping.start();
  looping.loop.attach(looping.session);
  looping.loop.begin();
  looping.body();
  EXPECT_TRUE(looping.loop.changed());
  looping.loop.abandon("the coffee ran out");
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { looping.save(path_); }), HasSubstr("the coffee ran out"));
}

TEST_F(TorchLoopTest, OnlyTheLoopMakesSteps) {
  Looping looping;
  looping.start();
  looping.loop.attach(looping.session);
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { looping.session.run(looping.training.train_op); }),
              HasSubstr("Only the loop makes steps"));
  looping.loop.begin();
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { looping.save(path_); }), HasSubstr("its own step"));
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { looping.loop.begin(); }), HasSubstr("end that first"));
  looping.loop.made(looping.body());
  EXPECT_EQ(looping.loop.step(), 1);
}

TEST_F(TorchLoopTest, AStepThatSomebodyElseHasCountedIsTold) {
  Looping looping;
  const Scope root(looping.graph);
  const Output other =
      ops::assign_add(root, looping.training.global_step, ops::constant(root, Tensor::scalar<int64_t>(1)));
  looping.start();
  looping.loop.attach(looping.session);
  looping.loop.begin();
  std::thread([&] { looping.session.run(other); }).join();
  const torch::Tensor loss = looping.body();
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { looping.loop.made(loss); }),
              HasSubstr("the global step is 1, but the loop has made step 0"));
}

TEST_F(TorchLoopTest, InputsAreForStepFunctions) {
  Trial trial;
  const Output input = ops::constant(Scope(trial.graph), Tensor::scalar(1.0f));
  EXPECT_THAT(message_of<InvalidArgumentError>(
                  [&] { torch_loop(Scope(trial.graph), *trial.net, {trial.optimizer.get()}, {.inputs = {input}}); }),
              HasSubstr("read the input in the loop"));
}

}  // namespace
}  // namespace longhaul
