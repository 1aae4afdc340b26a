// What a program may do and still end with the weights of a training that nobody stopped, without a warning.
#include <torch/nn/modules/rnn.h>

#include "longhaul/binding/torch_resume_fixture.h"

namespace longhaul {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(TorchResumeTest, NumbersDrawnBeforeEveryStepAreDrawnAgain) {
  const Warnings warnings;
  at::Tensor batch;
  const auto make = [&] {
    auto trial = plain();
    trial->step = [&, trial = trial.get()](const TorchStep&) {
      trial->optimizer->zero_grad();
      return trial->update(trial->loss_of(batch));
    };
    return trial;
  };
  const auto loop = [&](Trial& trial, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      batch = torch::randn({32, 4}).index_select(0, torch::randperm(32).narrow(0, 0, 16));
      trial.train();
    }
  };
  expect_exact(make, loop);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

TEST_F(TorchResumeTest, ACheckpointHasTheNumbersThatTheLastStepLeft) {
  const auto trial = plain();
  trial->start();
  trial->train(3);
  const std::string before = trial->save(directory_.file("before"));
  torch::rand({5});  // for the next step, which does not come
  const std::string after = trial->save(directory_.file("after"));
  const auto end = [&](const std::string& saved) {
    const auto resumed = plain();
    resumed->start(saved);
    resumed->train(3);
    return resumed->net->parameters()[0].detach().clone();
  };
  EXPECT_TRUE(at::equal(end(before), end(after)));
}

TEST_F(TorchResumeTest, WhatIsDrawnUnderKeepRandomStateIsNotTheTrainings) {
  const Warnings warnings;
  const auto loop = [](Trial& trial, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      trial.train();
      if (i % 5 != 4) continue;
      const KeepRandomState keep;
      torch::data::samplers::RandomSampler(50).reset();
    }
  };
  expect_exact(plain, loop);
  EXPECT_TRUE(equal(end_of(plain, loop), end_of(plain, plain_loop)));
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

TEST_F(TorchResumeTest, SeedingAgainInTheBodyDoesNotCountAfterARestore) {
  const Warnings warnings;
  expect_exact(plain, [](Trial& trial, int64_t first, int64_t last) {
    torch::manual_seed(1);
    plain_loop(trial, first, last);
  });
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

TEST_F(TorchResumeTest, SeedingInTheBodyCountsWhereNoStepHasBeenMade) {
  const auto loop = [](Trial& trial, int64_t first, int64_t last) {
    torch::manual_seed(1);
    plain_loop(trial, first, last);
  };
  const auto fresh = plain();
  fresh->start();
  const std::string saved = fresh->save(path_);
  const auto resumed = plain();
  loop(*resumed, resumed->start(saved), 5);
  loop(*fresh, 0, 5);
  EXPECT_TRUE(equal(fresh->net->parameters(), resumed->net->parameters()));
}

TEST_F(TorchResumeTest, SeedingBeforeEachStepByItsNumberIsExact) {
  const Warnings warnings;
  expect_exact(plain, [](Trial& trial, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      torch::manual_seed(static_cast<uint64_t>(100 + i));
      trial.train();
    }
  });
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

TEST_F(TorchResumeTest, GradientsAreGatheredOverStepsWhereTheyAreSaved) {
  const Warnings warnings;
  expect_exact([] { return gathering({.gradients = true}); }, plain_loop);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

TEST_F(TorchResumeTest, AGradientThatIsNotThereComesBackAsNone) {
  const auto first = gathering({.gradients = true});
  first->start();
  const std::string saved = first->save(path_);
  const auto second = gathering({.gradients = true});
  second->start();
  second->train(2);
  EXPECT_TRUE(second->net->parameters()[0].grad().defined());
  second->start(saved);
  EXPECT_FALSE(second->net->parameters()[0].grad().defined());
}

TEST_F(TorchResumeTest, GradientsCanBeSavedFromARestartOn) {
  const auto first = gathering({});
  first->start();
  first->train(4);
  const std::string saved = first->save(path_);
  const Warnings warnings;
  const auto second = gathering({.gradients = true});
  EXPECT_EQ(second->start(saved), 4);
  EXPECT_THAT(warnings.seen(), Contains(HasSubstr("lacks gradients/0.bias, gradients/0.weight")));
}

// A recurrent network that hands its state on from step to step.
struct Recurrent : Trial {
  explicit Recurrent(bool binds_state) {
    lstm = torch::nn::LSTM(4, 3);
    move_to_test_device(*lstm);
    optimizer = std::make_unique<torch::optim::SGD>(lstm->parameters(), 0.1);
    net = torch::nn::Sequential(torch::nn::Linear(4, 8));
    step = [this](const TorchStep&) {
      optimizer->zero_grad();
      const auto [output, state] = lstm->forward(torch::randn({5, 2, 4}, test_device()), std::make_tuple(hidden, cell));
      hidden = std::get<0>(state).detach();
      cell = std::get<1>(state).detach();
      return update(output.square().mean());
    };
    TorchTrainingOptions options;
    if (binds_state) options.state = {{"hidden", &hidden}, {"cell", &cell}};
    training =
        torch_training(Scope(graph), *lstm, *optimizer, [this](const TorchStep& at) { return step(at); }, options);
    init = ops::global_variables_initializer(Scope(graph));
    saver = std::make_unique<Saver>(SaverOptions{.graph = &graph});
  }
  torch::nn::LSTM lstm{nullptr};
  at::Tensor hidden = at::zeros({1, 2, 3}, test_device()), cell = at::zeros({1, 2, 3}, test_device());
};

TEST_F(TorchResumeTest, AStateThatStepsHandOnComesBack) {
  const Warnings warnings;
  const auto end = [&](bool binds_state, int64_t cut) {
    std::string saved;
    if (cut > 0) {
      Recurrent first(binds_state);
      first.start();
      first.train(static_cast<int>(cut));
      saved = first.save(path_);
    }
    Recurrent trial(binds_state);
    trial.train(static_cast<int>(kSteps - trial.start(saved)));
    return trial.lstm->parameters();
  };
  for (const int64_t cut : {1, 5, 11}) EXPECT_TRUE(equal(end(true, cut), end(true, 0))) << cut;
  EXPECT_FALSE(equal(end(false, 5), end(false, 0))) << "what this is about";
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

TEST_F(TorchResumeTest, AStepThatFailsWhenItHasChangedTheStateLeavesNothingToSave) {
  Recurrent trial(true);
  trial.start();
  trial.train(1);
  trial.step = [&](const TorchStep&) -> torch::Tensor {
    trial.hidden = at::ones({1, 2, 3}, test_device());
    throw OutOfRangeError("the input has ended");
  };
  EXPECT_THROW(trial.train(), OutOfRangeError);
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { trial.save(path_); }), HasSubstr("a step failed after"));
}

TEST_F(TorchResumeTest, ASecondTrainingOfAGraphCountsItsOwnSteps) {
  Trial one, other;
  const auto bind = [&](const TorchTrainingOptions& options) {
    return torch_training(
        Scope(one.graph).sub("other"), *other.net, *other.optimizer,
        [&](const TorchStep& at) { return other.step(at); }, options);
  };
  one.bind();
  EXPECT_THAT(message_of<AlreadyExistsError>([&] { bind({}); }),
              HasSubstr("torch_training/step already counts the global step"));
}

TEST_F(TorchResumeTest, TwoTrainingsOfAGraphGoOnWhereTheyWere) {
  const Warnings warnings;
  std::string saved;
  std::vector<at::Tensor> ends[2];
  for (const bool restarts : {false, true}) {
    Trial one, other;
    const TorchTraining second =
        torch_training(Scope(one.graph).sub("other"), *other.net, *other.optimizer,
                       [&](const TorchStep& at) { return other.step(at); }, {.counts_global_step = false});
    one.bind();
    const auto alternate = [&](int steps) {
      for (int i = 0; i < steps; ++i) {
        one.train();
        one.session.run(second.train_op);
        if (i % 2 == 0) one.session.run(second.train_op);
      }
    };
    EXPECT_EQ(one.start(saved), restarts ? 4 : 0);
    if (!restarts) alternate(4);
    EXPECT_EQ(one.session.run(second.global_step).item<int64_t>(), 6);
    if (!restarts) saved = one.save(path_);
    alternate(4);
    ends[restarts] = other.net->parameters();
  }
  EXPECT_TRUE(equal(ends[0], ends[1]));
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

// All that a program can be made of and say nothing about, with a checkpoint and an evaluation after each step.
class EachCompleteProgramTest : public ::testing::TestWithParam<OptimizerCase> {};

TEST_P(EachCompleteProgramTest, IsNotWarned) {
  const testing::TemporaryDirectory directory;
  const Warnings warnings;
  std::string saved;
  for (int run = 0; run < 2; ++run) {
    PlainProgram program(GetParam().make);
    torch::optim::StepLR scheduler(*program.optimizer, /*step_size=*/3, 0.5);
    Graph graph;
    const auto step = [&] {
      const torch::Tensor loss = program.step();
      scheduler.step();
      return loss;
    };
    const TorchTraining training =
        torch_training(Scope(graph), *program.net, *program.optimizer, step, {.schedulers = {&scheduler}});
    const Operation init = ops::global_variables_initializer(Scope(graph));
    Saver saver({.graph = &graph});
    DirectSession session(graph, {});
    if (saved.empty()) {
      session.run(init);
    } else {
      saver.restore(session, saved);
    }
    for (int i = 0; i < 10; ++i) {
      session.run(training.train_op);
      saved = saver.save(session, directory.file("model"), training.global_step);
      const torch::NoGradGuard no_grad;
      program.net->eval();
      program.net->forward(torch::ones({2, 4}, test_device()));
      program.net->train();
      program.optimizer->zero_grad();
    }
  }
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(, EachCompleteProgramTest, ::testing::ValuesIn(optimizer_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace longhaul
