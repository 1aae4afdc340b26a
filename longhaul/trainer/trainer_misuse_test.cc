// What a program may forget or mistake: it is told, at once if possible, and nothing is lost.
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <filesystem>
#include <limits>
#include <thread>

#include "longhaul/checkpoint.h"
#include "longhaul/runtime/install.h"
#include "longhaul/testing/fake_device/test_device_fixture.h"
#include "longhaul/trainer/trainer_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TrainerMisuseTest : public TrainerTest {};

TEST_F(TrainerMisuseTest, SlipsAreToldInALine) {
  Program program(fresh("run"));
  EXPECT_THROW(for ([[maybe_unused]] const int64_t step : program.trainer->steps(1)) program.step(),
               FailedPreconditionError);
  EXPECT_EQ(program.trainer->run([&] {
    for ([[maybe_unused]] const int64_t i : program.trainer->batches(3)) program.step();
  }),
            1);
  EXPECT_THAT(error_of(program), HasSubstr("batches() was called outside an epoch"));
  EXPECT_EQ(program.trainer->run([&] {
    for ([[maybe_unused]] const int64_t epoch : program.trainer->epochs(3)) {
      for ([[maybe_unused]] const int64_t step : program.trainer->steps(3)) program.step();
    }
  }),
            1);
  EXPECT_THAT(error_of(program), HasSubstr("the loop inside epochs() is batches()"));
  EXPECT_EQ(program.trainer->run([&] {
    for ([[maybe_unused]] const int64_t step : program.trainer->steps(3)) program.save();
  }),
            1);
  EXPECT_THAT(error_of(program), HasSubstr("saves, or reads all variables at one moment"));
  EXPECT_THROW(program.trainer->keep("late", program.count), FailedPreconditionError);
  EXPECT_EQ(program.trainer->run([&] { program.trainer->log("loss", torch::ones({2})); }), 1);
  EXPECT_THAT(error_of(program), HasSubstr("has 2 elements, want one"));
}

TEST_F(TrainerMisuseTest, WhatIsForgottenIsTold) {
  EXPECT_THROW(Program(""), InvalidArgumentError);
  const Logged logged;
  Program program(fresh("run"));
  EXPECT_EQ(program.trainer->run([&] {
    for (int i = 0; i < 3; ++i) program.step();
  }),
            0);
  EXPECT_THAT(logged.warnings(), Contains(HasSubstr("without a loop of the Trainer")));
  EXPECT_EQ(program.trainer->run([&] {
    std::exception_ptr error;
    std::thread([&] {
      try {
        for ([[maybe_unused]] const int64_t step : program.trainer->steps(3)) program.step();
      } catch (...) {
        error = std::current_exception();
      }
    }).join();
    if (error) std::rethrow_exception(error);
  }),
            1);
  EXPECT_THAT(logged.all(), Contains(HasSubstr("one thread makes the steps")));
}

struct Odd {};

TEST_F(TrainerMisuseTest, AnEvaluationThatThrowsBetweenStepsLeavesTheLoopsAsTheyWere) {
  Program program(fresh("run"));
  int caught = 0;
  EXPECT_EQ(program.trainer->run([&] {
    for ([[maybe_unused]] const int64_t epoch : program.trainer->epochs(3)) {
      for ([[maybe_unused]] const int64_t i : program.trainer->batches(2)) program.step();
      try {
        program.trainer->validate([]() -> double { throw Odd(); });
      } catch (const Odd&) {
        ++caught;
      }
      EXPECT_TRUE(program.net->is_training());
    }
  }),
            0);
  EXPECT_EQ(caught, 3);
  EXPECT_EQ(latest_checkpoint(FileSystem::real(), fresh("run")).value_or("none"), fresh("run") + "/model.ckpt-6");
}

TEST_F(TrainerMisuseTest, AStopBeforeTheRunIsKeptForIt) {
  Program program(fresh("run"));
  int made = 0;
  const auto steps = [&] {
    for ([[maybe_unused]] const int64_t step : program.trainer->steps(3)) {
      program.step();
      ++made;
    }
  };
  std::thread([&] { program.trainer->request_stop(); }).join();
  EXPECT_EQ(program.trainer->run(steps), 0);
  EXPECT_EQ(made, 0);
  EXPECT_EQ(program.trainer->run(steps), 0);
  EXPECT_EQ(made, 3) << "it was for one run";
}

TEST_F(TrainerMisuseTest, AnActionMayAddAnother) {
  Program program(fresh("run"));
  std::vector<int64_t> added;
  program.trainer->after_every(1, [&] {
    const int64_t at = program.trainer->step();
    for (int i = 0; i < 20; ++i) program.trainer->after_every(1, [&, at] { added.push_back(at); });
  });
  EXPECT_EQ(program.trainer->run([&] {
    for ([[maybe_unused]] const int64_t step : program.trainer->steps(3)) program.step();
  }),
            0);
  EXPECT_EQ(added.size(), 60u) << "20 after the second step, 40 after the third";
}

TEST_F(TrainerMisuseTest, AnActionOfTheBodyEndsWithIt) {
  Program program(fresh("run"));
  std::vector<std::string> called;
  program.trainer->after_every(1, [&] { called.push_back("before"); });
  const auto run_to = [&](int64_t last) {
    return program.trainer->run([&] {
      const std::string name = "body to " + std::to_string(last);
      program.trainer->after_every(1, [&called, &name] { called.push_back(name); });
      for ([[maybe_unused]] const int64_t step : program.trainer->steps(last)) program.step();
    });
  };
  EXPECT_EQ(run_to(1), 0);
  EXPECT_EQ(run_to(2), 0);
  EXPECT_THAT(called, ElementsAre("before", "body to 1", "before", "body to 2"));
}

TEST_F(TrainerMisuseTest, NumbersThatWouldEndTheTrainingAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(Program(fresh("run"), {.summary_steps = -1}), InvalidArgumentError);
  EXPECT_THROW(Program(fresh("run"), {.best = {.top_k = -1}}), InvalidArgumentError);
  EXPECT_THROW(Program(fresh("run"), {.early_stopping = {.patience = -1}}), InvalidArgumentError);
  EXPECT_THROW(Program(fresh("run"), {.early_stopping = {.min_delta = -0.5}}), InvalidArgumentError);
  EXPECT_THROW(Program(fresh("run"), {.early_stopping = {.min_delta = nan}}), InvalidArgumentError);
  Program rare(fresh("run"), {.summary_steps = std::numeric_limits<int64_t>::max()});
  EXPECT_EQ(rare.trainer->run([&] {
    for ([[maybe_unused]] const int64_t step : rare.trainer->steps(3)) rare.step();
  }),
            0);
}

// As a GAN has them, whose losses have other names.
TEST_F(TrainerMisuseTest, AnyLoggedValueThatIsNaNIsNamedOnce) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Program program(fresh("run"), {.summary_steps = 0});
  for (int run = 1; run <= 2; ++run) {
    const Logged logged;
    EXPECT_EQ(program.trainer->run([&] {
      for (const int64_t step : program.trainer->steps(5 * run)) {
        program.step();
        program.trainer->log("d_loss", torch::full({}, step % 5 == 2 ? nan : 1));
        program.trainer->log("g_loss", step % 5 < 3 ? 1 : -std::numeric_limits<double>::infinity());
        program.trainer->log("accuracy", 0.5);
      }
    }),
              0);
    EXPECT_THAT(logged.warnings(),
                ElementsAre(AllOf(HasSubstr("\"d_loss\" of step " + std::to_string(5 * run - 3) + " is nan"),
                                  HasSubstr("TrainerOptions::divergence")),
                            HasSubstr("\"g_loss\" of step " + std::to_string(5 * run - 2) + " is -inf")));
  }
}

// One step of many, between two summaries.
TEST_F(TrainerMisuseTest, ALossThatIsNaNIsNamedWithItsStep) {
  Program program(fresh("run"));
  const Logged logged;
  EXPECT_EQ(program.trainer->run([&] {
    for (const int64_t step : program.trainer->steps(6)) {
      program.step();
      if (step == 3) program.trainer->log("loss", torch::full({}, std::numeric_limits<double>::quiet_NaN()));
    }
  }),
            0);
  EXPECT_THAT(logged.warnings(), ElementsAre(HasSubstr("the loss of step 3 is nan. Training continues")));
}

TEST_F(TrainerMisuseTest, ARunWithinARunDoesNothing) {
  Program program(fresh("run"));
  EXPECT_EQ(program.trainer->run([&] {
    for ([[maybe_unused]] const int64_t step : program.trainer->steps(3)) {
      program.step();
      EXPECT_EQ(program.trainer->run([] { FAIL(); }), 1);
    }
  }),
            0);
  EXPECT_EQ(program.trainer->error(), nullptr);
}

TEST_F(TrainerMisuseTest, ALossBeforeTheLoopsIsToldAtOnce) {
  Program program(fresh("run"));
  const Logged logged;
  EXPECT_EQ(program.trainer->run([&] {
    program.trainer->log("rate", torch::ones({}));
    EXPECT_THAT(logged.warnings(), IsEmpty()) << "a number that is no loss";
    program.step();
    EXPECT_THAT(logged.warnings(), ElementsAre(HasSubstr("called before any loop of the Trainer")));
    program.step();
  }),
            0);
  EXPECT_THAT(logged.warnings(), Contains(HasSubstr("before any loop of the Trainer")).Times(1));
}

TEST_F(TrainerMisuseTest, AProgramThatLogsNoLossIsToldWhatItMisses) {
  torch::nn::Linear net(1, 1);
  move_to_test_device(*net);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  const Logged logged;
  Trainer trainer(fresh("run"), net, optimizer, {.progress = false});
  EXPECT_EQ(trainer.run([&] {
    for ([[maybe_unused]] const int64_t step : trainer.steps(120)) {
      optimizer.zero_grad();
      net->forward(torch::ones({1, 1}, test_device())).sum().backward();
      optimizer.step();
      trainer.log("loss", 0.5);
    }
  }),
            0);
  EXPECT_THAT(logged.all(), Contains(HasSubstr("the loss of 100 steps was not logged as a tensor")).Times(1));
}

// The loop over batches was left as it was: nothing is lost, and it is told in the first epoch.
TEST_F(TrainerMisuseTest, AnEpochWithoutBatchesIsOneStep) {
  const auto body = [](Program& program) {
    const auto loader = shuffling_loader();
    for ([[maybe_unused]] const int64_t epoch : program.trainer->epochs(4)) {
      for (auto& batch : *loader) program.step(batch.data);
      program.scheduler->step();
    }
  };
  {
    const Logged logged;
    Program program(fresh("told"));
    EXPECT_EQ(program.trainer->run([&] { body(program); }), 0);
    EXPECT_THAT(logged.warnings(),
                ElementsAre(AllOf(HasSubstr("no loop of Trainer::batches()"), HasSubstr("an epoch is one step"))));
  }
  expect_exact(body, 4);
}

TEST_F(TrainerMisuseTest, AnEpochThatChangesNothingIsNoStep) {
  const Logged logged;
  Program program(fresh("run"));
  EXPECT_EQ(program.trainer->run([&] {
    for ([[maybe_unused]] const int64_t epoch : program.trainer->epochs(2))
      program.net->forward(torch::ones({1, 4}, test_device()));
    EXPECT_EQ(program.trainer->step(), 0);
  }),
            0);
  EXPECT_THAT(logged.warnings(), IsEmpty());
}

TEST_F(TrainerMisuseTest, AStopThatTheProgramCatchesEndsItsLoopsAllTheSame) {
  const std::string place = fresh("run");
  Program program(place);
  program.stop_at(2);
  const Logged logged;
  int epochs = 0;
  EXPECT_EQ(program.trainer->run([&] {
    for ([[maybe_unused]] const int64_t epoch : program.trainer->epochs(5)) {
      try {
        ++epochs;
        for ([[maybe_unused]] const int64_t i : program.trainer->batches(3)) program.step();
      } catch (...) {  // as a program does that trains on after a bad batch
      }
    }
  }),
            0);
  EXPECT_EQ(epochs, 1);
  EXPECT_THAT(logged.warnings(), ElementsAre(HasSubstr("has caught the exception by which a stop leaves its loops")));
  EXPECT_EQ(latest_checkpoint(FileSystem::real(), place).value_or("none"), place + "/model.ckpt-2");
  program.trainer.reset();
  Program second(place);
  EXPECT_EQ(second.trainer->run([&] {
    for ([[maybe_unused]] const int64_t epoch : second.trainer->epochs(1)) {
      for ([[maybe_unused]] const int64_t i : second.trainer->batches(3)) second.step();
    }
    EXPECT_EQ(second.trainer->step(), 3) << "no batch was lost";
  }),
            0);
}

MATCHER(IsForATrainer, "names only what a Trainer's program has") {
  return arg.find("step function") == std::string::npos && arg.find("train_op") == std::string::npos &&
         arg.find("TorchTraining") == std::string::npos && arg.find("torch_training") == std::string::npos &&
         arg.find("bound") == std::string::npos;
}

TEST_F(TrainerMisuseTest, AdviceIsForAProgramWithATrainer) {
  const std::string place = fresh("run");
  for (const double rate : {0.1, 0.2}) {
    torch::nn::Sequential net(torch::nn::Linear(2, 2), torch::nn::Linear(2, 1));
    move_to_test_device(*net);
    torch::optim::SGD given(net[0]->parameters(), rate), forgotten(net[1]->parameters(), rate);
    torch::Tensor own = torch::ones({3}, torch::TensorOptions(test_device()).requires_grad(true));
    Trainer trainer(place, net, given, {.save_model_secs = Seconds{0}, .progress = false});
    const Logged logged;
    EXPECT_EQ(trainer.run([&] {
      for (const int64_t step : trainer.steps(trainer.step() + 10)) {
        given.zero_grad();
        const torch::Tensor loss = net->forward(torch::ones({1, 2}, test_device())).sum() + own.sum();
        loss.backward();
        given.step();
        forgotten.step();
        own.detach() -= 0.1;
        given.param_groups()[0].options().set_lr(0.1 / static_cast<double>(step + 2));
        trainer.log("loss", loss);
      }
    }),
              0);
    EXPECT_THAT(logged.warnings(), Each(IsForATrainer()));
    EXPECT_THAT(logged.warnings(),
                AllOf(Contains(AllOf(HasSubstr("1.weight is trained in the Trainer's loop"),
                                     HasSubstr("no optimizer of the Trainer has it"),
                                     HasSubstr("Pass the optimizer to the Trainer"))),
                      Contains(HasSubstr("(TrainerOptions::training.schedulers)")),
                      Contains(AllOf(HasSubstr("of shape [3]"), HasSubstr("nor in TrainerOptions::training.state")))));
    if (rate != 0.1) {
      EXPECT_THAT(logged.warnings(),
                  Contains(HasSubstr("TrainerOptions::training.restore_optimizer_options to false")));
    }
  }
}

TEST_F(TrainerMisuseTest, AStepThatDoesNotMoveIsToldToAProgramWithATrainer) {
  Program program(fresh("run"));
  const Logged logged;
  program.trainer->after_every(2, [&] {
    program.save();
    program.count += 1;
    program.save();
  });
  EXPECT_EQ(program.trainer->run([&] {
    for ([[maybe_unused]] const int64_t step : program.trainer->steps(3)) program.step();
  }),
            0);
  EXPECT_THAT(logged.warnings(), Contains(AllOf(HasSubstr("the global step is still 2"), IsForATrainer(),
                                                HasSubstr("make the steps in the Trainer's loops"))));
}

struct Net : torch::nn::Module {
  Net() { register_module("layer", layer); }
  torch::nn::Linear layer{2, 1};
};

TEST_F(TrainerMisuseTest, AModuleIsTakenAsTheProgramHasIt) {
  const auto names_of = [&](const auto& make) {
    const auto trainer = make();
    EXPECT_EQ(trainer->run([&] {
      for ([[maybe_unused]] const int64_t step : trainer->steps(0)) ADD_FAILURE();
    }),
              0);
    std::vector<std::string> names;
    for (const auto& saved : trainer->supervisor().saver()->saved_tensors()) names.push_back(saved.name);
    return names;
  };
  Net plain;
  const auto shared = std::make_shared<Net>();
  torch::nn::Sequential holder(torch::nn::Linear(2, 1));
  torch::optim::SGD of_plain(plain.parameters(), 0.1), of_shared(shared->parameters(), 0.1),
      of_holder(holder->parameters(), 0.1);
  int run = 0;
  const auto place = [&] { return fresh(std::to_string(run++)); };
  const auto layer = Contains("layer.weight");
  EXPECT_THAT(names_of([&] { return std::make_unique<Trainer>(place(), plain, of_plain); }), layer);
  EXPECT_THAT(names_of([&] { return std::make_unique<Trainer>(place(), shared, of_shared); }), layer);
  EXPECT_THAT(names_of([&] { return std::make_unique<Trainer>(place(), *shared, of_shared); }), layer);
  using Optimizers = std::vector<torch::optim::Optimizer*>;
  EXPECT_THAT(names_of([&] { return std::make_unique<Trainer>(place(), shared, Optimizers{&of_shared}); }), layer);
  EXPECT_THAT(names_of([&] { return std::make_unique<Trainer>(place(), holder, Optimizers{&of_holder}); }),
              Contains("0.weight"));
  using Modules = std::vector<NamedModule>;
  EXPECT_THAT(names_of([&] {
                return std::make_unique<Trainer>(place(),
                                                 Modules{{"plain", plain}, {"shared", shared}, {"holder", holder}},
                                                 Optimizers{&of_plain, &of_shared, &of_holder});
              }),
              AllOf(Contains("plain.layer.weight"), Contains("shared.layer.bias"), Contains("holder.0.weight")));
}

TEST_F(TrainerMisuseTest, AModuleThatIsNotMadeYetIsNamed) {
  torch::nn::Linear none{nullptr}, made(1, 1);
  torch::optim::SGD optimizer(made->parameters(), 0.1);
  const auto what = [](const auto& make) -> std::string {
    try {
      make();
    } catch (const InvalidArgumentError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(what([&] { Trainer(fresh("run"), none, optimizer); }), HasSubstr("the module is null"));
  EXPECT_THAT(what([&] { Trainer(fresh("run"), {{"made", made}, {"critic", none}}, {&optimizer}); }),
              HasSubstr("critic is null"));
}

TEST_F(TrainerMisuseTest, ASecondTrainerIsToldHowToShareTheSignals) {
  Program first(fresh("first"));
  try {
    Program second(fresh("second"));
    ADD_FAILURE() << "two objects handle the signals";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("TrainerOptions::preemption"));
  }
  Program second(fresh("second"), {.preemption = &first.trainer->preemption()});
}

TEST_F(TrainerMisuseTest, APointerToALoaderIsAsGoodAsTheLoader) {
  Program program(fresh("run"));
  const auto loader = shuffling_loader();
  std::vector<torch::Tensor> list{torch::ones({2, 4})};
  EXPECT_EQ(program.trainer->run([&] {
    for ([[maybe_unused]] const int64_t epoch : program.trainer->epochs(1)) {
      for (auto& batch : program.trainer->batches(loader)) program.step(batch.data);
      for (auto& batch : program.trainer->batches(&list)) program.step(batch);
    }
    EXPECT_EQ(program.trainer->step(), 4);
  }),
            0);
}

}  // namespace
}  // namespace longhaul
