// What a program leaves out of its checkpoints, and is told of: once.
#include "longhaul/binding/torch_resume_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(TorchFindingsTest, NumbersDrawnBetweenSomeStepsAreNamed) {
  const auto loop = [](Trial& trial, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      if (i % 3 == 2) torch::randperm(20);
      trial.train();
    }
  };
  EXPECT_THAT(warnings_of(plain, loop),
              ElementsAre(AllOf(HasSubstr("generators/cpu: random numbers are drawn between some steps"),
                                HasSubstr("KeepRandomState"))));
}

TEST_F(TorchFindingsTest, ALoaderThatShufflesIsNamedInTheRestartAtTheLatest) {
  const auto epochs = [](Trial& trial, int64_t first, int64_t last) {
    torch::data::samplers::RandomSampler sampler(10);
    for (int64_t i = first; i < last; ++i) {
      if (i == first || i % 100 == 0) sampler.reset();
      sampler.next(2);
      trial.train();
    }
  };
  EXPECT_THAT(warnings_of(plain, epochs), IsEmpty()) << "this is one epoch";
  EXPECT_THAT(warnings_of(plain, epochs, 5), ElementsAre(HasSubstr("a loader that shuffles")));
}

TEST_F(TorchFindingsTest, AnEvaluationBeforeTheLoopIsNamedAfterARestart) {
  const auto loop = [](Trial& trial, int64_t first, int64_t last) {
    torch::data::samplers::RandomSampler(50).reset();
    plain_loop(trial, first, last);
  };
  EXPECT_THAT(warnings_of(plain, loop), IsEmpty());
  EXPECT_THAT(warnings_of(plain, loop, 5), ElementsAre(HasSubstr("drawn between some steps")));
}

TEST_F(TorchFindingsTest, AnotherSeedAfterARestoreIsNamed) {
  const auto loop = [](Trial& trial, int64_t first, int64_t last) {
    torch::manual_seed(static_cast<uint64_t>(17 + first));
    plain_loop(trial, first, last);
  };
  EXPECT_THAT(warnings_of(plain, loop), IsEmpty());
  EXPECT_THAT(warnings_of(plain, loop, 5),
              ElementsAre(HasSubstr("generators/cpu: the generator was seeded between some steps")));
}

TEST_F(TorchFindingsTest, SeedsOfEpochsAreNoMatterWhereStepsDrawNothing) {
  at::Tensor order;
  const auto make = [&] {
    auto trial = plain();
    trial->net->eval();
    trial->step = [&, trial = trial.get()](const TorchStep& step) {
      trial->optimizer->zero_grad();
      return trial->update(trial->loss_of(order[step.number % 4].expand({3, 4})));
    };
    return trial;
  };
  const auto loop = [&](Trial& trial, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      if (i == first || i % 4 == 0) {
        torch::manual_seed(static_cast<uint64_t>(100 + i / 4));
        order = torch::randn({4, 4});
      }
      trial.train();
    }
  };
  const Warnings warnings;
  expect_exact(make, loop);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

std::unique_ptr<Trial> without_optimizer(const TorchTrainingOptions& options = {}) {
  auto trial = std::make_unique<Trial>();
  trial->bind(options, /*with_optimizer=*/false);
  return trial;
}

TEST_F(TorchFindingsTest, AnOptimizerThatIsNotBoundIsNamed) {
  EXPECT_THAT(warnings_of([] { return without_optimizer(); }),
              ElementsAre(AllOf(HasSubstr("0.weight is trained by the step function, but no bound optimizer has it"),
                                HasSubstr("updates_without_optimizer"))));
  EXPECT_THAT(warnings_of([] { return without_optimizer({.updates_without_optimizer = true}); }), IsEmpty());
}

TEST_F(TorchFindingsTest, ParametersThatAreCopiedInTheStepAreNoSignOfAnOptimizer) {
  struct WithTarget : torch::nn::Module {
    WithTarget() {
      online = register_module("online", torch::nn::Linear(2, 1));
      target = register_module("target", torch::nn::Linear(2, 1));
    }
    torch::nn::Linear online{nullptr}, target{nullptr};
  } module;
  move_to_test_device(module);
  torch::optim::Adam adam(module.online->parameters());
  Graph graph;
  const TorchTraining training = torch_training(Scope(graph), module, adam, [&] {
    adam.zero_grad();
    const torch::Tensor loss = module.online(torch::ones({1, 2}, test_device())).sum();
    loss.backward();
    adam.step();
    const torch::NoGradGuard no_grad;
    module.target->weight.copy_(module.online->weight);
    return loss;
  });
  const Warnings warnings;
  DirectSession session(graph, {});
  session.run(ops::global_variables_initializer(Scope(graph)));
  for (int i = 0; i < 5; ++i) session.run(training.train_op);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

TEST_F(TorchFindingsTest, AnOptimizerThatStepsAfterTheRunIsNamed) {
  const auto loop = [](Trial& trial, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      trial.train();
      trial.optimizer->step();
    }
  };
  EXPECT_THAT(warnings_of(without_update, loop), ElementsAre(HasSubstr("0.weight was changed between two steps")));
}

TEST_F(TorchFindingsTest, StatisticsThatAnEvaluationWritesAreNamed) {
  BoundProgram program;
  program.initialize().train(2);
  const Warnings warnings;
  program.net->forward(torch::ones({3, 4}, test_device()));  // eval() was forgotten
  program.train(2);
  EXPECT_THAT(warnings.seen(), Contains(HasSubstr("1.running_mean was changed between two steps")));
}

TEST_F(TorchFindingsTest, AModuleThatIsNotRegisteredIsNamedByTheShapeOfWhatItHas) {
  torch::nn::Linear head(2, 1);
  move_to_test_device(*head);
  torch::optim::SGD head_optimizer(head->parameters(), 0.1);
  const auto make = [&] {
    auto trial = plain();
    trial->step = [&, trial = trial.get()](const TorchStep&) {
      trial->optimizer->zero_grad();
      head_optimizer.zero_grad();
      const torch::Tensor loss = head(trial->net->forward(torch::ones({2, 4}, test_device()))).square().mean();
      trial->update(loss);
      head_optimizer.step();
      return loss;
    };
    return trial;
  };
  EXPECT_THAT(warnings_of(make), ElementsAre(HasSubstr("the step function trains a tensor of shape [1,2]")));
}

TEST_F(TorchFindingsTest, AnInputThatRequiresAGradientIsNoModule) {
  const torch::Tensor kept = torch::ones({2, 4}).requires_grad_(true);
  const auto make = [&] {
    auto trial = plain();
    trial->step = [&, trial = trial.get()](const TorchStep&) {
      trial->optimizer->zero_grad();
      const torch::Tensor fresh = torch::randn({2, 4}).requires_grad_(true);
      return trial->update(trial->loss_of(kept + fresh));
    };
    return trial;
  };
  EXPECT_THAT(warnings_of(make), IsEmpty());
}

// A training whose scheduler is bound, or is not.
struct Scheduled : Trial {
  explicit Scheduled(bool is_bound, bool follows_step = false) {
    scheduler = std::make_unique<torch::optim::StepLR>(*optimizer, /*step_size=*/3, 0.5);
    step = [this, plain_step = step](const TorchStep& at) {
      const torch::Tensor loss = plain_step(at);
      scheduler->step();
      return loss;
    };
    TorchTrainingOptions options{.rates_follow_step = follows_step};
    if (is_bound) options.schedulers = {scheduler.get()};
    bind(options);
  }
  std::unique_ptr<torch::optim::StepLR> scheduler;
};

TEST_F(TorchFindingsTest, ASchedulerThatIsNotBoundIsNamed) {
  EXPECT_THAT(
      warnings_of([] { return std::make_unique<Scheduled>(false); }),
      ElementsAre(AllOf(HasSubstr("the step function changed a learning rate, but no bound scheduler has stepped"),
                        HasSubstr("rates_follow_step"))));
  EXPECT_THAT(warnings_of([] { return std::make_unique<Scheduled>(false, /*follows_step=*/true); }), IsEmpty());
}

TEST_F(TorchFindingsTest, ASchedulerThatIsBoundIsExact) {
  const Warnings warnings;
  expect_exact([] { return std::make_unique<Scheduled>(true); }, plain_loop);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

TEST_F(TorchFindingsTest, ASchedulerThatStepsInTheLoopIsNamed) {
  const auto make = [](bool is_bound) {
    auto trial = std::make_unique<Scheduled>(is_bound);
    trial->step = [trial = trial.get()](const TorchStep&) {
      trial->optimizer->zero_grad();
      return trial->update(trial->loss_of(torch::ones({2, 4})));
    };
    return trial;
  };
  const auto loop = [](Trial& trial, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      trial.train();
      static_cast<Scheduled&>(trial).scheduler->step();
    }
  };
  EXPECT_THAT(warnings_of([&] { return make(true); }, loop),
              ElementsAre(HasSubstr("a scheduler stepped between two steps")));
  EXPECT_THAT(warnings_of([&] { return make(false); }, loop),
              ElementsAre(HasSubstr("a learning rate was changed between two steps, but not by a bound scheduler")));
}

TEST_F(TorchFindingsTest, ACheckpointWithoutASchedulersCountIsRestored) {
  Scheduled first(false);
  first.start();
  first.train(2);
  const std::string saved = first.save(path_);
  const Warnings warnings;
  Scheduled second(true);
  EXPECT_EQ(second.start(saved), 2);
  EXPECT_THAT(warnings.seen(), Contains(HasSubstr("lacks schedulers/0")));
}

class NewRateTest : public TorchFindingsTest {
 protected:
  // A program with the rate in its source; the rate that it goes on with.
  double rate_after(double source, const TorchTrainingOptions& options = {}) {
    Trial trial;
    group(trial).options().set_lr(source);
    trial.bind(options);
    trial.start(saved_);
    trial.train();
    saved_ = trial.save(path_);
    return group(trial).options().get_lr();
  }
  static torch::optim::OptimizerParamGroup& group(Trial& trial) { return trial.optimizer->param_groups()[0]; }

  std::string saved_;
};

TEST_F(NewRateTest, IsNamedAndTheCheckpointsCounts) {
  rate_after(0.1);
  for (int restart = 0; restart < 2; ++restart) {
    const Warnings warnings;
    EXPECT_EQ(rate_after(0.01), 0.1);
    EXPECT_THAT(warnings.seen(), ElementsAre(AllOf(HasSubstr("lr of group 0 is 0.01 in this program and 0.1"),
                                                   HasSubstr("restore_optimizer_options"))));
  }
}

TEST_F(NewRateTest, CountsWhereTheProgramSaysSo) {
  rate_after(0.1);
  const Warnings warnings;
  EXPECT_EQ(rate_after(0.01, {.restore_optimizer_options = false}), 0.01);
  EXPECT_EQ(rate_after(0.01), 0.01);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

TEST_F(TorchFindingsTest, ARateThatASchedulerHasChangedIsNoNewRate) {
  Scheduled first(true);
  first.start();
  first.train(7);
  const std::string saved = first.save(path_);
  const Warnings warnings;
  Scheduled second(true);
  second.start(saved);
  EXPECT_EQ(second.optimizer->param_groups()[0].options().get_lr(), 0.025);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

}  // namespace
}  // namespace longhaul
