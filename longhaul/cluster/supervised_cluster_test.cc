// Programs that train on a cluster under a Supervisor, or in a monitored session.
#include <gmock/gmock.h>

#include <atomic>

#include "longhaul/base/log.h"
#include "longhaul/cluster/supervised_cluster_fixture.h"
#include "longhaul/cluster/worker/ended_training.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SupervisedClusterTest : public ::testing::Test {
 protected:
  static TrainingProgramOptions not_chief() { return {.task = kWorker1, .is_chief = false}; }
  Seconds now() { return cluster_.clock().now(); }
  // The programs make that many more steps each.
  bool go_on(const std::vector<TrainingProgram*>& programs, Seconds most, int64_t steps = 4) {
    std::vector<int64_t> wanted;
    for (const TrainingProgram* program : programs) wanted.push_back(program->steps() + steps);
    return cluster_.within(most, [&] {
      for (size_t i = 0; i < programs.size(); ++i) {
        if (programs[i]->steps() < wanted[i]) return false;
      }
      return true;
    });
  }
  void end(const std::vector<TrainingProgram*>& programs) {
    for (TrainingProgram* program : programs) {
      program->end();
      EXPECT_TRUE(cluster_.within(Seconds{120}, [&] { return program->has_ended(); }));
      EXPECT_EQ(program->error(), "");
    }
  }
  CountedSteps found() {
    const auto found = cluster_.look();
    EXPECT_TRUE(found);
    if (!found) return {};
    EXPECT_TRUE(found->is_whole()) << found->a << ", " << found->b << ", step " << found->step;
    return *found;
  }

  const ThreadsEnd threads_end_;
  SupervisedCluster cluster_;
  const SimulatedClock::AtWork work_{cluster_.clock()};
};

TEST_F(SupervisedClusterTest, ChiefAndWorkerTrainOneModel) {  // RC-8
  TrainingProgram chief(cluster_, {}), second(cluster_, not_chief());
  EXPECT_TRUE(go_on({&chief, &second}, Seconds{30}));
  EXPECT_EQ(cluster_.sessions(), 2);
  end({&chief, &second});
  EXPECT_EQ(found().step, chief.steps() + second.steps());
  EXPECT_FALSE(FileSystem::real().exists(cluster_.logdir() + "/not_the_chief"));
  EXPECT_TRUE(cluster_.cluster().nothing_is_left(Seconds{60}));
}

// Not when a session of it is lost, nor at the end of another program.
class EndOfTraining : public SupervisedClusterTest, public ::testing::WithParamInterface<bool> {};

TEST_P(EndOfTraining, IsToldToItsServersByTheChiefAlone) {  // unlike RC-13
  TrainingProgram chief(cluster_, {.is_monitored = GetParam()}), second(cluster_, not_chief());
  EXPECT_TRUE(go_on({&chief, &second}, Seconds{30}));
  cluster_.restart_after(kPs1, Seconds{2});
  EXPECT_TRUE(go_on({&chief, &second}, Seconds{120}));
  end({&second});
  EXPECT_EQ(cluster_.cluster().trainings_ended(), 0);
  end({&chief});
  EXPECT_GE(cluster_.cluster().trainings_ended(), 2);  // both ps tasks
}

TEST_P(EndOfTraining, IsToldToAReplicaThatTrainsOn) {  // unlike RC-13
  TrainingProgram chief(cluster_, {.is_monitored = GetParam()}), second(cluster_, not_chief());
  EXPECT_TRUE(go_on({&chief, &second}, Seconds{30}));
  end({&chief});
  std::atomic<int> warnings{0};
  const LogSink before = set_log_sink([&](LogLevel, const std::string& message) {
    if (message.find("nobody saves them") != message.npos) ++warnings;
  });
  EXPECT_TRUE(go_on({&second}, Seconds{30}));
  cluster_.pass(EndedTraining::kLastSteps);
  EXPECT_TRUE(go_on({&second}, Seconds{30}));
  EXPECT_EQ(warnings, 1) << "once";
  end({&second});
  TrainingProgram back(cluster_, {.is_monitored = GetParam()});
  EXPECT_TRUE(go_on({&back}, Seconds{30}));
  TrainingProgram third(cluster_, not_chief());
  EXPECT_TRUE(go_on({&back, &third}, Seconds{30}));
  EXPECT_EQ(warnings, 1) << "there is a chief again";
  end({&third, &back});
  set_log_sink(before);
}

INSTANTIATE_TEST_SUITE_P(OfBothFrontEnds, EndOfTraining, ::testing::Bool());

TEST_F(SupervisedClusterTest, AWorkerBeginsAtOnceWhenTheModelIsReady) {  // unlike RC-9
  TrainingProgram second(cluster_, not_chief());
  cluster_.pass(Seconds{45});
  EXPECT_EQ(second.steps(), 0);
  TrainingProgram chief(cluster_, {});
  ASSERT_TRUE(cluster_.within(Seconds{30}, [&] { return chief.steps() > 0; }));
  const Seconds ready = now();
  EXPECT_TRUE(cluster_.within(Seconds{20}, [&] { return second.steps() > 0; }));
  EXPECT_LE((now() - ready).count(), 5);  // of the 30 s between two looks
  EXPECT_EQ(cluster_.sessions(), 2);      // not one for each look
  end({&chief, &second});
}

TEST_F(SupervisedClusterTest, TasksThatAreNotThereAreWaitedForAndNamed) {
  const LogRecorder log;
  cluster_.network().kill(kPs1);
  TrainingProgramOptions of_second = not_chief();
  of_second.max_wait_secs = Seconds{7200};
  TrainingProgram chief(cluster_, {.max_wait_secs = Seconds{7200}}), second(cluster_, of_second);
  cluster_.pass(Seconds{3600});  // pods may start an hour apart
  EXPECT_EQ(chief.steps() + second.steps(), 0);
  EXPECT_THAT(log.text(), HasSubstr("CreateSession still waiting for response from worker: " + kPs1));
  cluster_.cluster().start(kPs1);
  EXPECT_TRUE(go_on({&chief, &second}, Seconds{40}));
  EXPECT_EQ(chief.losses() + second.losses(), 0);
  end({&chief, &second});
}

TEST_F(SupervisedClusterTest, ATaskThatDoesNotComeEndsTheProgramAndIsNamed) {
  cluster_.network().kill(kPs1);
  TrainingProgram chief(cluster_, {.max_wait_secs = Seconds{20}});
  EXPECT_TRUE(cluster_.within(Seconds{60}, [&] { return chief.has_ended(); }));
  EXPECT_THAT(chief.error(), AllOf(HasSubstr("Session was not ready after waiting 20 secs."), HasSubstr(kPs1)));
}

TEST_F(SupervisedClusterTest, AStopEndsTheWaitForATask) {
  cluster_.network().kill(kPs1);
  CountedModel model;
  Supervisor sv({.graph = &model.graph, .logdir = cluster_.logdir(), .clock = &cluster_.clock()});
  cluster_.clock().at(now() + Seconds{5}, [&] { sv.request_stop(); });
  const Seconds began = now();
  EXPECT_EQ(coded_error_of([&] { sv.managed_session([](Session&) { FAIL(); }, {.master = kWorker}); }), "");
  EXPECT_LE((now() - began).count(), 10);
}

TEST_F(SupervisedClusterTest, AfterTheDeathOfAPsAllIsSetBackToOneCheckpoint) {  // unlike RC-3, RC-4
  const LogRecorder log;
  TrainingProgram chief(cluster_, {.save_model_secs = Seconds{20}}), second(cluster_, not_chief());
  ASSERT_TRUE(go_on({&chief, &second}, Seconds{60}, 8));
  cluster_.pass(Seconds{12});  // until the journal has looked
  cluster_.restart_after(kPs1, Seconds{1});
  ASSERT_TRUE(cluster_.within(Seconds{60}, [&] { return chief.losses() >= 1 && second.losses() >= 1; }));
  EXPECT_TRUE(go_on({&chief}, Seconds{60}, 1));
  EXPECT_TRUE(go_on({&second}, Seconds{5}, 1)) << "at once, and not after the 30 s between two looks";
  EXPECT_TRUE(go_on({&chief, &second}, Seconds{60}));
  EXPECT_GE(chief.losses(), 1);
  EXPECT_GE(second.losses(), 1);
  EXPECT_THAT(log.text(), AllOf(HasSubstr("Restored model from "), HasSubstr(" s of training"),
                                HasSubstr("are lost, and are made again: ")));
  end({&chief, &second});
  EXPECT_LT(found().step, chief.steps() + second.steps());
}

// Not even for a moment: the task that is back is ready once it has its values, and who waits for that is told at once.
TEST_F(SupervisedClusterTest, NobodyTrainsAModelThatIsSetBackOnOneTaskAlone) {  // unlike RC-3
  TrainingProgram chief(cluster_, {.save_model_secs = Seconds{5}}), second(cluster_, not_chief());
  ASSERT_TRUE(go_on({&chief, &second}, Seconds{60}));
  ASSERT_TRUE(cluster_.within(Seconds{30}, [&] { return cluster_.saved_step() > 0; }));
  cluster_.restart_after(kPs1, Seconds{1});
  cluster_.pass(Seconds{0.2});  // until the steps under way have ended
  cluster_.network().plan({.kind = NetworkFault::Kind::kDelay,
                           .time = Seconds{2},
                           .of = MessageKind{.from = kWorker, .to = kPs, .method = "Commit"}});
  EXPECT_TRUE(go_on({&chief, &second}, Seconds{60}));
  EXPECT_EQ(cluster_.network().faults_to_come(), 0u);
  end({&chief, &second});
  EXPECT_GT(found().step, 0);
}

TEST_F(SupervisedClusterTest, ARestartedChiefLeavesTheLiveModel) {  // unlike RC-5
  const LogRecorder log;
  TrainingProgram chief(cluster_, {.save_model_secs = Seconds{1000}}), second(cluster_, not_chief());
  ASSERT_TRUE(go_on({&chief, &second}, Seconds{30}));
  cluster_.restart_after(kWorker, Seconds{5});
  EXPECT_TRUE(go_on({&chief, &second}, Seconds{60}));
  EXPECT_EQ(second.losses(), 0);
  EXPECT_THAT(log.text(), AllOf(HasSubstr("The model is already initialised"), Not(HasSubstr("Restored model from"))));
  end({&second, &chief});
  EXPECT_GE(found().step, chief.steps() + second.steps());
  EXPECT_EQ(cluster_.saved_step(), found().step);
}

// The first numbers that a program of that task draws after joining in the training, or after initialising the model.
Tensor first_draw(SupervisedCluster& cluster, const std::string& task, bool is_chief) {
  Graph graph;
  graph.set_seed(7);
  const Scope root(graph);
  const Variable step = ops::create_global_step(root.with_device("/job:ps/task:0"));
  const Output noise = ops::randn(root, {4}, kFloat, "noise");
  SessionManager manager({.graph = &graph,
                          .ready_op = ops::report_uninitialized_variables(root, ops::global_variables(graph)),
                          .coordinator = Coordinator({.clock = &cluster.clock()})});
  const auto session = is_chief ? manager.prepare_session({.master = task, .init_op = step.initializer()})
                                : manager.wait_for_session(task, {}, Seconds{60});
  const Tensor drawn = session->run(noise);
  session->run(ops::assign_add(root.with_device("/job:ps/task:0"), step, ops::constant(root, int64_t{1})));
  return drawn;
}

TEST_F(SupervisedClusterTest, ProgramsThatJoinDrawTheirOwnRandomNumbers) {
  const Tensor of_chief = first_draw(cluster_, kWorker, /*is_chief=*/true);
  const Tensor of_worker = first_draw(cluster_, kWorker1, /*is_chief=*/false);
  for (const std::string& task : {kWorker, kWorker1}) cluster_.restart_after(task, Seconds{1});
  cluster_.pass(Seconds{2});
  const Tensor of_worker_again = first_draw(cluster_, kWorker1, /*is_chief=*/false);
  const Tensor of_chief_again = first_draw(cluster_, kWorker, /*is_chief=*/true);
  const std::vector<Tensor> all{of_chief, of_worker, of_worker_again, of_chief_again};
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(identical(all[i], all[j])) << i << " and " << j;
  }
}

TEST_F(SupervisedClusterTest, AWorkerThatEndsItsLoopHarmsNobody) {
  TrainingProgram chief(cluster_, {}), second(cluster_, not_chief());
  ASSERT_TRUE(go_on({&chief, &second}, Seconds{30}));
  end({&second});
  EXPECT_TRUE(go_on({&chief}, Seconds{30}));
  EXPECT_EQ(chief.losses() + second.losses(), 0);
  end({&chief});
  EXPECT_EQ(found().step, chief.steps() + second.steps());
}

// What servers have that nobody has ended.
class OtherModel : public SupervisedClusterTest {};

TEST_F(OtherModel, ThatIsOlderThanTheNewestCheckpointIsRefused) {
  {
    TrainingProgram chief(cluster_, {});
    ASSERT_TRUE(go_on({&chief}, Seconds{60}, 20));
    end({&chief});
  }
  const int64_t saved = cluster_.saved_step();
  for (const std::string& ps : {kPs, kPs1}) cluster_.restart_after(ps, Seconds{1});
  cluster_.pass(Seconds{2});
  {  // of another directory, as it were
    CountedModel other;
    const auto session = cluster_.cluster().session(other.graph);
    session->run(ops::global_variables_initializer(other.root));
    session->run(other.train);
    session->close();
  }
  TrainingProgram chief(cluster_, {});
  EXPECT_TRUE(cluster_.within(Seconds{60}, [&] { return chief.has_ended(); }));
  EXPECT_THAT(chief.error(), AllOf(HasSubstr("the servers have a model at step 1, which is older than"),
                                   HasSubstr("model.ckpt-" + std::to_string(saved)), HasSubstr("Session::reset")));
  EXPECT_EQ(cluster_.saved_step(), saved);
}

TEST_F(OtherModel, ThatIsOlderThanSkippedCheckpointsIsTaken) {
  {
    TrainingProgram chief(cluster_, {});
    ASSERT_TRUE(go_on({&chief}, Seconds{60}, 20));
    end({&chief});
  }
  const int64_t saved = cluster_.saved_step();
  CountedModel model;
  {  // as after a rollback
    const auto session = cluster_.cluster().session(model.graph);
    session->run(ops::assign(model.on0, model.step, ops::constant(model.on0, saved - 1)));
    session->close();
  }
  Saver saver({.graph = &model.graph});
  const auto prepare = [&](bool is_skipped) {
    SessionManager manager(
        {.graph = &model.graph,
         .ready_op = ops::report_uninitialized_variables(model.root, ops::global_variables(model.graph)),
         .coordinator = Coordinator({.clock = &cluster_.clock()}),
         .is_skipped = [=](const std::string&) { return is_skipped; }});
    return coded_error_of([&] {
      manager.prepare_session({.master = kWorker, .saver = &saver, .checkpoint_dir = cluster_.logdir()})->close();
    });
  };
  EXPECT_THAT(prepare(/*is_skipped=*/false), HasSubstr("which is older than the newest checkpoint"));
  EXPECT_EQ(prepare(/*is_skipped=*/true), "");
}

// The same variables and one more, which moves some to other tasks.
TEST_F(OtherModel, OfAProgramWithOtherVariablesIsRefused) {
  {
    TrainingProgram chief(cluster_, {});
    ASSERT_TRUE(go_on({&chief}, Seconds{60}));
    end({&chief});
  }
  CountedModel model;
  ops::variable(model.on0, "one_more", Tensor::scalar(0.0));
  Supervisor sv({.graph = &model.graph, .logdir = cluster_.logdir(), .clock = &cluster_.clock()});
  EXPECT_THAT(
      coded_error_of([&] { sv.managed_session([](Session&) { FAIL(); }, {.master = kWorker}); }),
      AllOf(HasSubstr("FAILED_PRECONDITION: "), HasSubstr("but not one_more"), HasSubstr("/job:ps/task:0 has a")));
}

TEST_F(OtherModel, ThatLacksAVariableOfAWorkerIsSaidToIt) {
  const LogRecorder log;
  TrainingProgram chief(cluster_, {});
  ASSERT_TRUE(go_on({&chief}, Seconds{60}));
  CountedModel model;
  ops::variable(model.on0, "one_more", Tensor::scalar(0.0));
  Supervisor sv({.graph = &model.graph, .is_chief = false, .clock = &cluster_.clock()});
  const std::string error = coded_error_of(
      [&] { sv.managed_session([](Session&) { FAIL(); }, {.master = kWorker1, .max_wait_secs = Seconds{90}}); });
  EXPECT_THAT(error, AllOf(HasSubstr("Session was not ready after waiting 90 secs."), HasSubstr("one_more")));
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("but not one_more of this program"));
  end({&chief});
}

class PsThatStops : public SupervisedClusterTest, public ::testing::WithParamInterface<bool> {};

TEST_P(PsThatStops, IsSavedBeforeItGoes) {
  TrainingProgram chief(cluster_, {.save_model_secs = Seconds{1000}, .is_monitored = GetParam()});
  ASSERT_TRUE(go_on({&chief}, Seconds{60}, 8));
  const int64_t before = chief.steps();
  EXPECT_LT(cluster_.saved_step(), before);
  cluster_.cluster().announce_stop(kPs1, Seconds{30});
  EXPECT_TRUE(cluster_.within(Seconds{25}, [&] { return cluster_.saved_step() >= before; }));
  const int64_t safe = cluster_.saved_step();
  cluster_.restart_after(kPs1, Seconds{1});
  EXPECT_TRUE(go_on({&chief}, Seconds{60}));
  end({&chief});
  EXPECT_GE(found().step, safe);
}

INSTANTIATE_TEST_SUITE_P(FrontEnds, PsThatStops, ::testing::Bool());

// A run that is lost in its commit is known or made again, never both and never neither.
class LostInItsCommit : public SupervisedClusterTest,
                        public ::testing::WithParamInterface<std::tuple<NetworkFault::Kind, double, int>> {
 protected:
  static MessageKind message(int which) {
    if (which == 0) return {.from = kPs1, .to = kWorker, .method = "RunPart", .is_reply = true};
    if (which == 1) return {.from = kWorker, .to = kPs1, .method = "Commit"};
    return {.from = kPs1, .to = kWorker, .method = "Commit", .is_reply = true};
  }
};

TEST_P(LostInItsCommit, ARunThatReturnsIsOneStep) {  // unlike RC-11
  const auto [kind, seconds, which] = GetParam();
  TrainingProgram chief(cluster_, {.save_model_secs = Seconds{1000}, .is_monitored = true});
  ASSERT_TRUE(go_on({&chief}, Seconds{60}));
  cluster_.network().plan({.kind = kind, .message = 1, .time = Seconds{seconds}, .of = message(which)});
  ASSERT_TRUE(cluster_.within(Seconds{60}, [&] { return cluster_.network().faults_to_come() == 0; }));
  EXPECT_TRUE(go_on({&chief}, Seconds{90}));
  end({&chief});
  EXPECT_EQ(found().step, chief.steps());
}

INSTANTIATE_TEST_SUITE_P(Messages, LostInItsCommit,
                         ::testing::Combine(::testing::Values(NetworkFault::Kind::kCut, NetworkFault::Kind::kCutOneWay,
                                                              NetworkFault::Kind::kLose),
                                            ::testing::Values(1.0, 10.0), ::testing::Values(0, 1, 2)));

}  // namespace
}  // namespace longhaul
