// What the function of Trainer::validate() may change: nothing that training depends on, or it is told.
#include <ATen/ops/rand.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include "longhaul/binding/module_average.h"
#include "longhaul/testing/fake_device/test_device_fixture.h"
#include "longhaul/trainer/trainer_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TrainerValidationTest : public TrainerTest {
 protected:
  // Validations at the ends of three epochs, between two steps or within one.
  void validate(Program& program, const std::function<double()>& evaluate, bool in_step = false) {
    EXPECT_EQ(program.trainer->run([&] {
      for ([[maybe_unused]] const int64_t epoch : program.trainer->epochs(3)) {
        for ([[maybe_unused]] const int64_t i : program.trainer->batches(2)) {
          program.step();
          if (in_step) program.trainer->validate(evaluate);
        }
        if (!in_step) program.trainer->validate(evaluate);
      }
    }),
              0);
  }

  const Logged logged_;
};

TEST_F(TrainerValidationTest, PutsBackTheModeOfEachPartAndTheProgramsOwnGenerators) {
  Program program(fresh("run"));
  program.net[1]->eval();  // a part that stays in this mode
  at::Tensor before;
  validate(program, [&] {
    before = program.own.get_state();
    program.net->train();
    return torch::rand({4}, program.own).sum().item<double>();
  });
  EXPECT_TRUE(program.net->is_training());
  EXPECT_FALSE(program.net[1]->is_training());
  EXPECT_TRUE(at::equal(program.own.get_state(), before));
  EXPECT_THAT(logged_.warnings(), IsEmpty());
}

TEST_F(TrainerValidationTest, ThatWritesToTheModuleIsToldOnceInARun) {
  for (const bool in_step : {false, true}) {
    const Logged logged;
    Program program(fresh(in_step ? "within" : "between"));
    validate(
        program,
        [&] {
          program.net->parameters()[1].mul_(0.5);
          return 0.5;
        },
        in_step);
    EXPECT_THAT(logged.warnings(),
                ElementsAre(AllOf(HasSubstr("has written to 0.bias"), HasSubstr("AveragedWeights"))));
  }
}

TEST_F(TrainerValidationTest, WhoseStatisticsAreTakenIsTold) {
  torch::nn::Sequential net(torch::nn::Linear(2, 2), torch::nn::BatchNorm1d(2));
  move_to_test_device(*net);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  Trainer trainer(fresh("run"), net, optimizer, {.progress = false});
  EXPECT_EQ(trainer.run([&] {
    for ([[maybe_unused]] const int64_t step : trainer.steps(2)) {
      optimizer.zero_grad();
      const torch::Tensor loss = net->forward(torch::randn({8, 2}, test_device())).square().mean();
      loss.backward();
      optimizer.step();
      trainer.log("loss", loss);
      trainer.validate([&] {
        net->train();
        return net->forward(torch::randn({8, 2}, test_device())).sum().item<double>();
      });
    }
  }),
            0);
  EXPECT_THAT(logged_.warnings(), ElementsAre(HasSubstr("has written to 1.running_mean of the module")));
}

// Which would keep the worst checkpoint as the best one.
TEST_F(TrainerValidationTest, WhoseMetricsOnlyGetWorseMayHaveTheWrongMode) {
  const auto validate_in = [&](const std::string& place, const std::vector<double>& metrics, MetricMode mode) {
    const Logged logged;
    Program program(place, {.best = {.mode = mode}});
    EXPECT_EQ(program.trainer->run([&] {
      for (const int64_t step : program.trainer->steps(static_cast<int64_t>(metrics.size()))) {
        program.step();
        program.trainer->validate([&] { return metrics[static_cast<size_t>(step)]; });
      }
    }),
              0);
    return logged.warnings();
  };
  const auto validate_each = [&](const std::string& name, const std::vector<double>& metrics, MetricMode mode) {
    return validate_in(fresh(name), metrics, mode);
  };
  const std::vector<double> accuracies{0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.96, 0.97};
  EXPECT_THAT(validate_each("slip", accuracies, MetricMode::kMin),
              ElementsAre(AllOf(HasSubstr("0.95 is the 5th in a row"), HasSubstr("MetricMode::kMax"))));
  EXPECT_THAT(validate_each("right", accuracies, MetricMode::kMax), IsEmpty());
  EXPECT_THAT(validate_each("overfits", {0.9, 0.8, 0.85, 0.9, 0.95, 1, 1.1, 1.2}, MetricMode::kMin), IsEmpty());
  EXPECT_THAT(validate_each("once", {1, 2, 3, 4, 5, 6, 5, 6, 7, 8, 9, 10, 11}, MetricMode::kMin), SizeIs(1));
  const std::string place = fresh("restarted");
  EXPECT_THAT(validate_in(place, {0.9}, MetricMode::kMin), IsEmpty());
  EXPECT_THAT(validate_in(place, {0.9, 0.8, 0.85, 0.9, 0.95, 1, 1.1, 1.2}, MetricMode::kMin), IsEmpty());
  const std::string gained = fresh("gained");
  EXPECT_THAT(validate_in(gained, {0.9, 0.8}, MetricMode::kMin), IsEmpty());
  EXPECT_THAT(validate_in(gained, {0.9, 0.8, 0.85, 0.9, 0.95, 1, 1.1, 1.2}, MetricMode::kMin), IsEmpty())
      << "what was before the restart is not known";
}

// What the code behind it changes is part of the next loop's first step, as without a validation.
TEST_F(TrainerValidationTest, BetweenTwoLoopsIsFollowedByTheStepThatWasUnderWay) {
  const auto body = [](Program& program) {
    for ([[maybe_unused]] const int64_t step : program.trainer->steps(3)) program.step();
    const double metric = program.trainer->validate([&] { return torch::rand({}).item<double>(); });
    EXPECT_THROW(program.save(), FailedPreconditionError) << "a checkpoint would have half of what follows";
    program.seen += metric;
    program.scheduler->step();
    for ([[maybe_unused]] const int64_t epoch : program.trainer->epochs(2)) {
      for ([[maybe_unused]] const int64_t i : program.trainer->batches(2)) program.step();
    }
  };
  expect_exact(body, 7);
}

TEST_F(TrainerValidationTest, WithAveragedWeightsIsNotBlamed) {
  Program program(fresh("run"));
  ModuleAverage average(*program.net);
  program.trainer->keep("average", average);
  average.update();
  validate(program, [&] {
    const AveragedWeights weights(average);
    return program.net->forward(torch::ones({2, 4}, test_device())).sum().item<double>();
  });
  EXPECT_THAT(logged_.warnings(), IsEmpty());
}

TEST_F(TrainerValidationTest, ThatChangesAKeptValueBetweenTwoStepsIsTold) {
  for (const bool in_step : {true, false}) {
    const Logged logged;
    Program program(fresh(in_step ? "within" : "between"));
    validate(
        program,
        [&] {
          ++program.count;
          return 0.5;
        },
        in_step);
    if (in_step) {
      EXPECT_THAT(logged.warnings(), IsEmpty()) << "it is part of the step";
    } else {
      EXPECT_THAT(logged.warnings(),
                  ElementsAre(AllOf(HasSubstr("has changed kept/mine"), HasSubstr("Change it behind validate()"))));
    }
  }
}

}  // namespace
}  // namespace longhaul
