#include "longhaul/trainer/trainer.h"

#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "longhaul/binding/module_state_dict.h"
#include "longhaul/checkpoint.h"
#include "longhaul/runtime/install.h"
#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/fake_device/test_device_fixture.h"
#include "longhaul/trainer/trainer_fixture.h"

namespace longhaul {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(TrainerTest, StepsThatAreCutAnywhereEndWithTheSameBytes) {
  expect_exact(
      [](Program& program) {
        for (const int64_t step : program.trainer->steps(7)) {
          program.step();
          if (step % 3 == 2) program.scheduler->step();
        }
      },
      7);
}

TEST_F(TrainerTest, EpochsOverAShufflingLoaderEndWithTheSameBytesWithTheCodeAroundTheBatches) {
  expect_exact(
      [](Program& program) {
        const auto loader = shuffling_loader();
        for (const int64_t epoch : program.trainer->epochs(3)) {
          if (epoch > 0) program.scheduler->step();  // before the batches: a restart within the epoch repeats the call
          const torch::Tensor noise = torch::randn({4});
          program.count = 0;
          for (auto& batch : program.trainer->batches(*loader)) program.step(batch.data + noise);
          program.seen *= 2;  // behind them
        }
      },
      9);
}

// What it draws and reads is changed by the batches: a restart within them gives it what it had.
TEST_F(TrainerTest, TheCodeBeforeTheBatchesFindsItsNumbersAndEnginesAsTheyWere) {
  expect_exact(
      [](Program& program) {
        for ([[maybe_unused]] const int64_t epoch : program.trainer->epochs(3)) {
          std::vector<torch::Tensor> order;
          for (int i = 0; i < 4; ++i) order.push_back(torch::full({2, 4}, 0.1 * i));
          std::shuffle(order.begin(), order.end(), program.dice);
          const double shift = static_cast<double>(program.count % 10) + torch::rand({1}, program.own).item<double>();
          for (const torch::Tensor& batch : program.trainer->batches(order)) {
            program.step(batch + shift);
            program.seen += torch::rand({}, program.own);
          }
        }
      },
      12);
}

TEST_F(TrainerTest, EpochsWithSeveralLoopsOfBatches) {
  expect_exact(
      [](Program& program) {
        for (const int64_t epoch : program.trainer->epochs(2)) {
          for (const int64_t i : program.trainer->batches(2))
            program.step(torch::randn({4, 4}) + static_cast<double>(i));
          program.seen += static_cast<double>(epoch);
          for (const int64_t i : program.trainer->batches(3)) {
            program.step();
            program.seen += static_cast<double>(i);
          }
          program.scheduler->step();
        }
      },
      10);
}

TEST_F(TrainerTest, EpochsThatGrow) {
  expect_exact(
      [](Program& program) {
        for (const int64_t epoch : program.trainer->epochs(3)) {
          for ([[maybe_unused]] const int64_t i : program.trainer->batches(2 + 2 * epoch)) program.step();
          program.scheduler->step();
        }
      },
      12);
}

TEST_F(TrainerTest, EpochsThatShrink) {
  expect_exact(
      [](Program& program) {
        for (const int64_t epoch : program.trainer->epochs(3)) {
          for ([[maybe_unused]] const int64_t i : program.trainer->batches(6 - 2 * epoch)) program.step();
          program.scheduler->step();
        }
      },
      12);
}

struct NoisyPoints : Points {
  torch::data::Example<> get(size_t index) override {
    auto example = Points::get(index);
    return {example.data + 0.1 * torch::randn({4}), example.target};
  }
};

// A dataset of torch::data whose transforms draw from the default generator as each batch is loaded.
TEST_F(TrainerTest, BatchesWithRandomTransforms) {
  expect_exact(
      [](Program& program) {
        const auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
            torch::data::datasets::map(NoisyPoints(), torch::data::transforms::Stack<>()),
            torch::data::DataLoaderOptions(4));
        for ([[maybe_unused]] const int64_t epoch : program.trainer->epochs(3)) {
          for (auto& batch : program.trainer->batches(*loader)) program.step(batch.data);
        }
      },
      9);
}

// What a program does to the weights around the batches, and between two loops.
struct Rewrite {
  const char* name;
  void (*in_epoch)(Program& program, int64_t epoch);
};

class RewritingTest : public TrainerTest, public ::testing::WithParamInterface<Rewrite> {};

TEST_P(RewritingTest, WhatTheCodeBeforeTheBatchesDoesToTheWeightsIsDoneOnce) {
  expect_exact(
      [](Program& program) {
        for (const int64_t epoch : program.trainer->epochs(2)) {
          GetParam().in_epoch(program, epoch);
          for ([[maybe_unused]] const int64_t i : program.trainer->batches(3)) program.step();
        }
      },
      6);
}

INSTANTIATE_TEST_SUITE_P(, RewritingTest,
                         ::testing::Values(Rewrite{"Initialises",
                                                   [](Program& program, int64_t epoch) {
                                                     const torch::NoGradGuard no_grad;
                                                     if (epoch == 0) program.net->parameters()[0].fill_(0.1);
                                                   }},
                                           Rewrite{"CopiesAsATargetNetworkDoes",
                                                   [](Program& program, int64_t) {
                                                     const torch::NoGradGuard no_grad;
                                                     const auto all = program.net->parameters();
                                                     all[3].copy_(all[1].narrow(0, 0, 2));
                                                   }},
                                           Rewrite{"AddsNoise",
                                                   [](Program& program, int64_t) {
                                                     const torch::NoGradGuard no_grad;
                                                     for (auto& weight : program.net->parameters())
                                                       weight += 0.01 * torch::randn_like(weight);
                                                   }},
                                           Rewrite{
                                               "ForgetsTheMoments",
                                               [](Program& program, int64_t) { program.optimizer->state().clear(); }}),
                         [](const auto& info) { return info.param.name; });

TEST_F(TrainerTest, WeightsThatAreWrittenBeforeAndBetweenTheLoops) {
  expect_exact(
      [](Program& program) {
        const auto write = [&](size_t i) {
          const torch::NoGradGuard no_grad;
          program.net->parameters()[i].fill_(0.25);
        };
        write(0);
        for ([[maybe_unused]] const int64_t step : program.trainer->steps(3)) program.step();
        write(2);
        program.seen += 1;
        for ([[maybe_unused]] const int64_t step : program.trainer->steps(7)) program.step();
      },
      7);
}

// As for the best ones: the program takes them out of run().
TEST_F(TrainerTest, WeightsThatAreWrittenBehindTheLoopsStay) {
  const std::string place = fresh("run");
  for (int start = 0; start < 2; ++start) {
    Program program(place);
    EXPECT_EQ(program.trainer->run([&] {
      for ([[maybe_unused]] const int64_t step : program.trainer->steps(3)) program.step();
      const torch::NoGradGuard no_grad;
      program.net->parameters()[0].fill_(0.25);
    }),
              0);
    EXPECT_TRUE(torch::all(program.net->parameters()[0] == 0.25).item<bool>()) << start;
  }
}

TEST_F(TrainerTest, OneLoopAfterTheOther) {
  expect_exact(
      [](Program& program) {
        for ([[maybe_unused]] const int64_t step : program.trainer->steps(3)) program.step();
        for (const int64_t epoch : program.trainer->epochs(2)) {
          for ([[maybe_unused]] const int64_t i : program.trainer->batches(2)) program.step();
          program.seen += static_cast<double>(epoch);
        }
        for ([[maybe_unused]] const int64_t step : program.trainer->steps(9)) program.step();
      },
      9);
}

TEST_F(TrainerTest, ValidationDoesNotChangeTheTrainingAndItsCountsAreExact) {
  const auto body = [](Program& program) {
    for ([[maybe_unused]] const int64_t epoch : program.trainer->epochs(3)) {
      for ([[maybe_unused]] const int64_t i : program.trainer->batches(2)) program.step();
      const double metric = program.trainer->validate([&] {
        EXPECT_FALSE(program.net->is_training());
        EXPECT_FALSE(at::GradMode::is_enabled());
        return program.net->forward(torch::randn({8, 4}, test_device())).square().mean().item<double>();
      });
      EXPECT_TRUE(program.net->is_training());
      program.seen += metric;
      program.scheduler->step();
      program.seen += program.trainer->best_metric();
    }
  };
  expect_exact(body, 6);
}

// A stop that comes during the validation waits for the end of the step that the changes before it belong to.
TEST_F(TrainerTest, WhatIsChangedBeforeAValidationThatIsStoppedIsDoneOnce) {
  const auto run = [](Program& program, bool is_stopped) {
    EXPECT_EQ(program.trainer->run([&] {
      for ([[maybe_unused]] const int64_t epoch : program.trainer->epochs(3)) {
        for ([[maybe_unused]] const int64_t i : program.trainer->batches(2)) program.step();
        program.scheduler->step();
        program.count += 1;
        program.seen += torch::rand({});
        program.trainer->validate([&] {
          if (is_stopped && program.trainer->step() == 2) program.trainer->request_stop();
          return 0.5;
        });
      }
    }),
              0);
  };
  Program whole(fresh("whole"));
  run(whole, false);
  const auto expected = whole.state();
  whole.trainer.reset();
  const std::string place = fresh("stopped");
  {
    Program first(place);
    run(first, true);
  }
  Program second(place);
  run(second, false);
  expect_same(second.state(), expected, "after the restart");
}

TEST_F(TrainerTest, ALongValidationIsNoHang) {
  const Logged logged;
  testing::FakeClock clock;
  Program program(fresh("run"), {.supervisor = [&](SupervisorOptions& sv) {
                    sv.clock = &clock;
                    sv.services.hang.after = Seconds{20};
                  }});
  EXPECT_EQ(program.trainer->run([&] {
    for ([[maybe_unused]] const int64_t epoch : program.trainer->epochs(1)) {
      for ([[maybe_unused]] const int64_t i : program.trainer->batches(2)) program.step();
      program.trainer->validate([&] {
        clock.advance_before_hang_watch(Seconds{200});
        return 1.0;
      });
      EXPECT_THAT(logged.all(), Not(Contains(HasSubstr("the training hangs"))));
      clock.advance_before_hang_watch(Seconds{200});
    }
  }),
            0);
  EXPECT_THAT(logged.all(), Contains(HasSubstr("the training hangs"))) << "behind the validation it is one";
}

TEST_F(TrainerTest, AStepFunctionIsEnough) {
  Program program(fresh("run"));
  EXPECT_EQ(program.trainer->run(5,
                                 [&](int64_t) {
                                   program.step();
                                   return torch::ones({});
                                 }),
            0);
  EXPECT_EQ(latest_checkpoint(FileSystem::real(), fresh("run")).value_or("none"), fresh("run") + "/model.ckpt-5");
}

TEST_F(TrainerTest, CodeBehindTheLoopsRunsOnlyWhenTheyAreComplete) {
  const std::string place = fresh("run");
  int times = 0;
  const auto body = [&](Program& program) {
    for ([[maybe_unused]] const int64_t step : program.trainer->steps(4)) program.step();
    ++times;
  };
  Program first(place);
  first.stop_at(2);
  EXPECT_EQ(first.trainer->run([&] { body(first); }), 0);
  EXPECT_EQ(times, 0);
  first.trainer.reset();
  Program second(place);
  EXPECT_EQ(second.trainer->run([&] { body(second); }), 0);
  EXPECT_EQ(times, 1);
}

TEST_F(TrainerTest, ASignalSavesAndAsksForARestart) {
  const std::string place = fresh("run");
  Program program(place);
  program.trainer->after_every(1, [&] {
    if (program.trainer->step() != 3) return;
    program.trainer->preemption().preempt();
  });
  EXPECT_EQ(program.trainer->run([&] {
    for ([[maybe_unused]] const int64_t step : program.trainer->steps(100)) program.step();
  }),
            kPreemptedStatus);
  EXPECT_EQ(latest_checkpoint(FileSystem::real(), place).value_or("none"), place + "/model.ckpt-3");
}

TEST_F(TrainerTest, ABreakEndsTheLoopForGood) {
  const std::string place = fresh("run");
  const auto body = [](Program& program) {
    for (const int64_t step : program.trainer->steps(10)) {
      program.step();
      if (step == 3) break;
    }
  };
  const Logged logged;
  Program first(place);
  EXPECT_EQ(first.trainer->run([&] { body(first); }), 0);
  EXPECT_THAT(logged.all(), Contains(HasSubstr("steps(10) was left by a break at step 4: ")));
  const auto expected = first.state();
  first.trainer.reset();
  EXPECT_EQ(latest_checkpoint(FileSystem::real(), place).value_or("none"), place + "/model.ckpt-4")
      << "the step that broke off counts";
  Program second(place);
  EXPECT_EQ(second.trainer->run([&] {
    EXPECT_EQ(second.trainer->step(), 4);
    body(second);
    EXPECT_EQ(second.trainer->step(), 4);
  }),
            0);
  EXPECT_THAT(logged.all(), Contains(HasSubstr("steps(10) was left by a break before the restart")));
  EXPECT_THAT(logged.all(), Not(Contains(HasSubstr("all steps are made"))));
  expect_same(second.state(), expected, "after the restart");
}

TEST_F(TrainerTest, ABreakBeforeAnythingIsChangedIsNoStep) {
  const std::string place = fresh("run");
  Program program(place);
  EXPECT_EQ(program.trainer->run([&] {
    for (const int64_t step : program.trainer->steps(10)) {
      if (step == 3) break;
      program.step();
    }
  }),
            0);
  EXPECT_EQ(latest_checkpoint(FileSystem::real(), place).value_or("none"), place + "/model.ckpt-3");
}

TEST_F(TrainerTest, ABreakInTheBatchesEndsTheEpoch) {
  expect_exact(
      [](Program& program) {
        for ([[maybe_unused]] const int64_t epoch : program.trainer->epochs(3)) {
          for (const int64_t i : program.trainer->batches(10)) {
            program.step();
            if (i == 1) break;
          }
          program.scheduler->step();
        }
      },
      6);
}

TEST_F(TrainerTest, AnEarlyStopIsFinalAndSaysSo) {
  const std::string place = fresh("run");
  const auto body = [](Program& program) {
    for (const int64_t epoch : program.trainer->epochs(10)) {
      for ([[maybe_unused]] const int64_t i : program.trainer->batches(2)) program.step();
      if (epoch == 1) program.trainer->finish("good enough");
    }
  };
  Program first(place);
  EXPECT_EQ(first.trainer->run([&] { body(first); }), 0);
  first.trainer.reset();
  const Logged logged;
  Program second(place);
  EXPECT_EQ(second.trainer->run([&] {
    body(second);
    EXPECT_EQ(second.trainer->step(), 4);
  }),
            0);
  EXPECT_TRUE(second.trainer->is_finished());
  EXPECT_THAT(logged.all(), Contains(HasSubstr("has finished at step 4: good enough")));
}

TEST_F(TrainerTest, ValidationsWithoutAGainStopTheTraining) {
  Program program(fresh("run"), {.early_stopping = {.patience = 2}});
  const std::vector<double> metrics{0.5, 0.4, 0.6, 0.45, 0.1};
  size_t validations = 0;
  EXPECT_EQ(program.trainer->run([&] {
    for ([[maybe_unused]] const int64_t epoch : program.trainer->epochs(5)) {
      for ([[maybe_unused]] const int64_t i : program.trainer->batches(2)) program.step();
      program.trainer->validate([&] { return metrics[validations++]; });
    }
    EXPECT_EQ(program.trainer->step(), 8);
  }),
            0);
  EXPECT_EQ(validations, 4u);
  EXPECT_EQ(program.trainer->best_metric(), 0.4);
  EXPECT_EQ(program.trainer->best_step(), 4);
}

TEST_F(TrainerTest, TheBestCheckpointsAreKept) {
  const std::string place = fresh("run");
  TrainerOptions options{.best = {.top_k = 1}};
  options.supervisor = [](SupervisorOptions&) {};
  Program program(place, options);
  const std::vector<double> metrics{0.5, 0.1, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97};
  EXPECT_EQ(program.trainer->run([&] {
    for (const int64_t epoch : program.trainer->epochs(8)) {
      for ([[maybe_unused]] const int64_t i : program.trainer->batches(1)) program.step();
      program.trainer->validate([&] { return metrics[static_cast<size_t>(epoch)]; });
    }
    EXPECT_THAT(program.trainer->supervisor().saver()->best_checkpoints(), ElementsAre(place + "/model.ckpt-2"));
  }),
            0);
  EXPECT_TRUE(std::filesystem::exists(place + "/model.ckpt-2.index"));
  EXPECT_FALSE(std::filesystem::exists(place + "/model.ckpt-1.index"));
}

TEST_F(TrainerTest, AnErrorInTheLoopIsLoggedAndTheStatusIsOne) {
  const std::string place = fresh("run");
  const Logged logged;
  Program program(place);
  EXPECT_EQ(program.trainer->run([&] {
    for (const int64_t step : program.trainer->steps(10)) {
      program.step();
      if (step == 3) throw std::runtime_error("no more coffee");
    }
  }),
            1);
  EXPECT_TRUE(program.trainer->error());
  EXPECT_THAT(logged.all(), Contains(HasSubstr("has ended with an error: no more coffee")));
  EXPECT_FALSE(latest_checkpoint(FileSystem::real(), place)) << "half a step is not saved";
}

class OrderedBatchesTest : public TrainerTest, public ::testing::WithParamInterface<bool> {};

TEST_P(OrderedBatchesTest, BatchesThatComeInAnotherOrderAfterARestartAreTold) {
  const bool is_other = GetParam();
  const std::string place = fresh("run");
  const auto body = [](Program& program, double first) {
    std::vector<torch::Tensor> batches;
    for (int i = 0; i < 4; ++i) batches.push_back(torch::full({2, 4}, first + i));
    for ([[maybe_unused]] const int64_t epoch : program.trainer->epochs(1)) {
      for (const torch::Tensor& batch : program.trainer->batches(batches)) program.step(batch);
    }
  };
  {
    Program first(place);
    first.stop_at(2);
    EXPECT_EQ(first.trainer->run([&] { body(first, 0.1); }), 0);
  }
  const Logged logged;
  Program second(place);
  EXPECT_EQ(second.trainer->run([&] { body(second, is_other ? 0.2 : 0.1); }), 0);
  EXPECT_EQ(second.trainer->step(), 4);
  if (is_other) {
    EXPECT_THAT(logged.warnings(), ElementsAre(HasSubstr("come in another order than before the restart")));
  } else {
    EXPECT_THAT(logged.warnings(), IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(, OrderedBatchesTest, ::testing::Bool());

TEST_F(TrainerTest, PairsAndTuplesAreRecognisedByTheirFirst) {
  const torch::Tensor batch = torch::arange(4);
  const uint64_t look = look_at_batch(batch);
  EXPECT_NE(look, 0u);
  EXPECT_EQ(look_at_batch(std::make_pair(batch, 1.5)), look);
  EXPECT_EQ(look_at_batch(std::make_tuple(batch, batch, 1.5)), look);
}

TEST_F(TrainerTest, ALoaderThatHasShrunkIsTold) {
  const std::string place = fresh("run");
  const auto body = [](Program& program, int64_t batches) {
    for ([[maybe_unused]] const int64_t epoch : program.trainer->epochs(1)) {
      for ([[maybe_unused]] const int64_t i : program.trainer->batches(batches)) program.step();
    }
  };
  {
    Program first(place);
    first.stop_at(3);
    EXPECT_EQ(first.trainer->run([&] { body(first, 4); }), 0);
  }
  const Logged logged;
  Program second(place);
  EXPECT_EQ(second.trainer->run([&] { body(second, 2); }), 0);
  EXPECT_THAT(logged.warnings(), ElementsAre(HasSubstr("but the loader has only 2 now")));
}

TEST_F(TrainerTest, SeveralModulesHaveTheirNames) {
  torch::nn::Linear generator(2, 2), critic(2, 1);
  move_to_test_device(*generator);
  move_to_test_device(*critic);
  torch::optim::SGD for_generator(generator->parameters(), 0.1), for_critic(critic->parameters(), 0.1);
  Trainer trainer(fresh("run"), {{"generator", generator}, {"critic", critic}}, {&for_generator, &for_critic},
                  {.progress = false});
  EXPECT_EQ(trainer.run(2,
                        [&](int64_t step) {
                          torch::optim::SGD& optimizer = step == 0 ? for_critic : for_generator;
                          optimizer.zero_grad();
                          const torch::Tensor noise = torch::ones({1, 2}, test_device());
                          const torch::Tensor loss = critic->forward(generator->forward(noise)).mean();
                          loss.backward();
                          optimizer.step();
                          return loss;
                        }),
            0);
  std::vector<std::string> names;
  for (const auto& saved : trainer.supervisor().saver()->saved_tensors()) names.push_back(saved.name);
  EXPECT_THAT(names, Contains("generator.weight"));
  EXPECT_THAT(names, Contains("critic.bias"));
}

TEST_F(TrainerTest, TheLossIsWrittenForTensorBoard) {
  const std::string place = fresh("run");
  Program program(place, {.summary_steps = 2});
  EXPECT_EQ(program.trainer->run(3, [&](int64_t) { return (program.step(), torch::full({}, 0.25)); }), 0);
  bool has_events = false;
  for (const auto& file : std::filesystem::directory_iterator(place))
    has_events |= file.path().filename().string().find("tfevents") != std::string::npos;
  EXPECT_TRUE(has_events);
}

// Whose weight is the number of its steps, in each element.
struct Counting {
  torch::nn::Linear net{torch::nn::LinearOptions(1000, 100).bias(false)};
  torch::optim::SGD optimizer{net->parameters(), torch::optim::SGDOptions(1)};
  Counting() {
    const torch::NoGradGuard no_grad;
    move_to_test_device(*net);
    net->weight.zero_();
  }
  torch::Tensor step() {
    optimizer.zero_grad();
    const torch::Tensor loss = -net->weight.sum();
    loss.backward();
    optimizer.step();
    return loss;
  }
};

TEST_F(TrainerTest, PublishesWholeWeightsOfOneStepWhileItTrains) {
  Counting counting;
  NewestWeights newest;
  Trainer trainer(fresh("run"), counting.net, counting.optimizer, {.save_model_secs = Seconds{0}, .progress = false});
  trainer.publish_weights(newest, 10);
  std::vector<int64_t> steps;
  std::thread reader([&] {
    std::shared_ptr<const Weights> weights, newer;
    torch::nn::Linear copy(torch::nn::LinearOptions(1000, 100).bias(false));
    while ((newer = newest.wait_for_newer(weights, Seconds{60}))) {
      weights = newer;
      load_state_dict(*copy, weights->tensors);
      EXPECT_TRUE(torch::all(copy->weight == static_cast<double>(weights->step)).item<bool>()) << weights->step;
      steps.push_back(weights->step);
    }
  });
  EXPECT_EQ(trainer.run(400, [&](int64_t) { return counting.step(); }), 0);
  reader.join();
  EXPECT_TRUE(newest.is_closed());
  ASSERT_THAT(steps, Not(IsEmpty()));
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
  EXPECT_EQ(steps.back(), 400);  // what is due at the end is still published
}

TEST_F(TrainerTest, EachRunPublishesAnewFromWhereItBegins) {
  const std::string place = fresh("run");
  for (const int64_t first : {0, 30}) {
    Counting counting;
    NewestWeights newest;
    Trainer trainer(place, counting.net, counting.optimizer, {.save_model_secs = Seconds{0}, .progress = false});
    trainer.publish_weights(newest, 1000);
    EXPECT_EQ(trainer.run([&] {
      const auto weights = newest.wait_for_newer(nullptr, Seconds{60});
      ASSERT_NE(weights, nullptr);
      EXPECT_EQ(weights->step, first);
      EXPECT_EQ(weights->version, 1);
      for (const int64_t step : trainer.steps(first + 30))
        trainer.log("loss", (static_cast<void>(step), counting.step()));
    }),
              0);
    EXPECT_THROW(trainer.publish_weights(newest, 1), FailedPreconditionError);
  }
}

// As self-play does, whose games come from readers: a snapshot would wait for the step.
TEST_F(TrainerTest, TheFirstStepMayWaitForTheFirstWeights) {
  Counting counting;
  NewestWeights newest;
  Trainer trainer(fresh("run"), counting.net, counting.optimizer, {.save_model_secs = Seconds{0}, .progress = false});
  trainer.publish_weights(newest, 1);
  EXPECT_EQ(trainer.run(3,
                        [&](int64_t) {
                          EXPECT_NE(newest.wait_for_newer(nullptr, Seconds{60}), nullptr);
                          return counting.step();
                        }),
            0);
}

TEST_F(TrainerTest, PublishingEndsWithAnErrorToo) {
  Counting counting;
  NewestWeights newest;
  Trainer trainer(fresh("run"), counting.net, counting.optimizer, {.save_model_secs = Seconds{0}, .progress = false});
  EXPECT_THROW(trainer.publish_weights(newest, 0), InvalidArgumentError);
  trainer.publish_weights(newest, 1);
  EXPECT_EQ(trainer.run(10,
                        [&](int64_t step) {
                          if (step == 5) throw std::runtime_error("the loss is not a number");
                          return counting.step();
                        }),
            1);
  EXPECT_TRUE(newest.is_closed());
}

TEST_F(TrainerTest, PublishingEndsWithARunThatDoesNotBegin) {
  Counting counting;
  NewestWeights newest;
  write_file_atomically(FileSystem::real(), fresh("file"), "no directory");
  Trainer trainer(fresh("file") + "/run", counting.net, counting.optimizer, {.progress = false});
  trainer.publish_weights(newest, 1);
  EXPECT_EQ(trainer.run(10, [&](int64_t) { return counting.step(); }), 1);
  EXPECT_TRUE(newest.is_closed()) << "or those who wait for weights wait forever";
}

}  // namespace
}  // namespace longhaul
