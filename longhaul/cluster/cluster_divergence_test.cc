// A chief whose loss goes bad, on a cluster with another worker: all go back to one step.
#include <gmock/gmock.h>

#include <atomic>
#include <limits>

#include "longhaul/base/log.h"
#include "longhaul/cluster/supervised_cluster_fixture.h"
#include "longhaul/io/files/file.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

// The loss is a variable, which the test spoils; a rollback counts itself in the model.
struct WatchedModel : CountedModel {
  Variable loss = ops::variable(on0, "loss", Tensor::scalar(1.0)),
           rollbacks = ops::variable(on1, "rollbacks", Tensor::scalar(0.0));
  Operation spoil = ops::assign(on0, loss, ops::constant(on0, std::numeric_limits<double>::quiet_NaN()), "spoil").op();
  Operation count = ops::assign_add(on1, rollbacks, ops::constant(on1, 1.0)).op();
  Output read_loss = ops::identity(on0, loss, "read_loss"), read_rollbacks = ops::identity(on1, rollbacks, "read_rb");
};

enum class FrontEnd { kSupervisor, kMonitored };

// How a chief's program continues after a rollback.
enum class After {
  kSameSupervisor,  // as the guide says
  kEnds,            // it is started again
};

struct ChiefOfTest {
  FrontEnd front_end = FrontEnd::kSupervisor;
  After after = After::kSameSupervisor;
  bool on_rollback_fails = false;
};

// Such a program, on a thread of its own.
class WatchfulChief {
 public:
  WatchfulChief(SupervisedCluster& cluster, const ChiefOfTest& options)
      : cluster_(cluster), options_(options), thread_([this] { run(); }) {}
  ~WatchfulChief() {
    end();
    EXPECT_TRUE(cluster_.within(Seconds{300}, [this] { return has_ended(); })) << "the chief does not end";
    thread_.join();
  }
  void end() { is_over_ = true; }
  bool has_ended() const { return has_ended_; }
  int64_t steps() const { return steps_; }
  int told() const { return told_; }  // on_rollback
  std::string error() const { return has_ended_ ? error_ : "it runs"; }

 private:
  void run() {
    const SimulatedClock::AtWork work(cluster_.clock());
    try {
      options_.front_end == FrontEnd::kMonitored ? train_monitored() : train();
    } catch (const std::exception& error) {
      error_ = error.what();
    }
    has_ended_ = true;
  }

  DivergenceOptions divergence(const WatchedModel& model) {
    DivergenceOptions divergence{.margin_steps = 4, .keep_in_checkpoints = options_.front_end == FrontEnd::kMonitored};
    divergence.on_rollback = [this, &model](Session& session, const Rollback&) {
      ++told_;
      if (options_.on_rollback_fails) throw InternalError("on_rollback fails");
      session.run(model.count);
    };
    return divergence;
  }

  void train() {
    WatchedModel model;
    Supervisor sv({.graph = &model.graph,
                   .logdir = cluster_.logdir(),
                   .save_summaries_secs = Seconds{0},
                   .save_model_secs = Seconds{1},
                   .stop_grace_secs = Seconds{30},
                   .services = {.divergence = divergence(model)},
                   .clock = &cluster_.clock()});
    while (true) {
      try {
        return sv.managed_session(
            [&](Session& session) {
              while (!sv.should_stop() && !is_over_) {
                session.run(model.train);
                ++steps_;
                sv.look_at_loss(session, session.run(model.read_loss).item<double>());
                sv.coord().wait_for_stop(Seconds{0.25});
              }
            },
            {.master = kWorker, .max_wait_secs = Seconds{120}});
      } catch (const RollBackError&) {
        if (options_.after == After::kEnds) throw;
      }
    }
  }

  void train_monitored() {
    WatchedModel model;
    const Coordinator coord({.clock = &cluster_.clock()});
    monitored_training_session(
        {.graph = &model.graph,
         .master = kWorker,
         .checkpoint_dir = cluster_.logdir(),
         .save_checkpoint_secs = Seconds{1},
         .save_summaries_steps = 0,
         .log_step_count_steps = 0,
         .max_wait_secs = Seconds{120},
         .failures = {.restart = {.max_restarts = 0}, .loss = model.read_loss, .divergence = divergence(model)},
         .coordinator = coord},
        [&](MonitoredSession& session) {
          while (!session.should_stop() && !is_over_) {
            session.run(model.train);
            ++steps_;
            coord.wait_for_stop(Seconds{0.25});
          }
        });
  }

  SupervisedCluster& cluster_;
  const ChiefOfTest options_;
  std::atomic<bool> is_over_{false}, has_ended_{false};
  std::atomic<int64_t> steps_{0};
  std::atomic<int> told_{0};
  std::string error_;  // written before has_ended_
  std::thread thread_;
};

class ClusterDivergence : public ::testing::Test {
 protected:
  bool go_on(const WatchfulChief& chief, const TrainingProgram& second, int64_t steps = 16) {
    const int64_t of_chief = chief.steps() + steps, of_second = second.steps() + steps;
    return cluster_.within(
        Seconds{120}, [&] { return (chief.steps() >= of_chief && second.steps() >= of_second) || chief.has_ended(); });
  }
  // From here on the model's loss is bad, on its servers.
  void spoil() {
    WatchedModel model;
    cluster_.cluster().session(model.graph, {}, kWorker1)->run(model.spoil);
  }
  double rollbacks_in_model() {
    WatchedModel model;
    return cluster_.cluster().session(model.graph, {}, kWorker1)->run(model.read_rollbacks).item<double>();
  }
  Rollbacks journal() {
    return parse_run_journal(read_file(FileSystem::real(), journal_path(cluster_.logdir()))).history.rollbacks();
  }
  bool ended(WatchfulChief& chief) {
    return cluster_.within(Seconds{120}, [&] { return chief.has_ended(); });
  }
  void expect_whole_model(int64_t at_least) {
    const auto found = cluster_.look();
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->is_whole()) << found->a << ", " << found->b << ", step " << found->step;
    EXPECT_GE(found->step, at_least);
  }

  const ThreadsEnd threads_end_;
  SupervisedCluster cluster_;
  const SimulatedClock::AtWork work_{cluster_.clock()};
};

class ClusterDivergenceOf : public ClusterDivergence, public ::testing::WithParamInterface<FrontEnd> {};

TEST_P(ClusterDivergenceOf, AllGoBackToOneStep) {
  WatchfulChief chief(cluster_, {.front_end = GetParam()});
  TrainingProgram second(cluster_, {.task = kWorker1, .is_chief = false});
  ASSERT_TRUE(go_on(chief, second));
  const LogRecorder log;
  spoil();
  ASSERT_TRUE(cluster_.within(Seconds{120}, [&] { return chief.told() > 0 || chief.has_ended(); }));
  ASSERT_TRUE(go_on(chief, second));
  EXPECT_EQ(chief.told(), 1);
  EXPECT_EQ(second.losses(), 1) << "its session ended once";
  EXPECT_EQ(rollbacks_in_model(), 1);
  const Rollbacks rollbacks = journal();
  ASSERT_EQ(rollbacks.count(), 1);
  EXPECT_FALSE(rollbacks.is_under_way());
  EXPECT_LE(rollbacks.all().back().restored_step, rollbacks.all().back().diverged_step - 4);
  EXPECT_THAT(log.text(), HasSubstr("the model is dropped"));
  EXPECT_THAT(log.text(), HasSubstr("rolled back to step"));
  expect_whole_model(rollbacks.all().back().restored_step + 16);
  chief.end();
  EXPECT_TRUE(ended(chief));
  EXPECT_EQ(chief.error(), "");
  second.end();
  EXPECT_TRUE(cluster_.within(Seconds{120}, [&] { return second.has_ended(); }));
  EXPECT_TRUE(cluster_.cluster().nothing_is_left(Seconds{60}));
}

// As if it was killed between the bad loss and the restore: the other worker trains the bad model meanwhile.
TEST_F(ClusterDivergence, AChiefThatIsStartedAgainGoesBackToo) {
  TrainingProgram second(cluster_, {.task = kWorker1, .is_chief = false});
  {
    WatchfulChief chief(cluster_, {.after = After::kEnds});
    ASSERT_TRUE(go_on(chief, second));
    spoil();
    ASSERT_TRUE(ended(chief));
    EXPECT_THAT(chief.error(), HasSubstr("the model goes back to"));
  }
  EXPECT_TRUE(journal().is_under_way());
  EXPECT_EQ(second.losses(), 0) << "it does not know yet";
  WatchfulChief again(cluster_, {.front_end = FrontEnd::kMonitored});
  ASSERT_TRUE(go_on(again, second));
  EXPECT_EQ(again.told(), 1);
  EXPECT_EQ(second.losses(), 1);
  EXPECT_EQ(rollbacks_in_model(), 1);
  EXPECT_FALSE(journal().is_under_way());
  expect_whole_model(1);
}

TEST_P(ClusterDivergenceOf, AChiefThatComesBackLaterContinuesTheLivingModel) {
  TrainingProgram second(cluster_, {.task = kWorker1, .is_chief = false});
  {
    WatchfulChief chief(cluster_, {.front_end = GetParam()});
    ASSERT_TRUE(go_on(chief, second));
    spoil();
    ASSERT_TRUE(cluster_.within(Seconds{120}, [&] { return chief.told() > 0 || chief.has_ended(); }));
    ASSERT_TRUE(go_on(chief, second));
    chief.end();
    ASSERT_TRUE(ended(chief));
  }
  EXPECT_EQ(second.losses(), 1);
  WatchfulChief again(cluster_, {.front_end = GetParam()});
  ASSERT_TRUE(go_on(again, second));
  EXPECT_EQ(again.told(), 0) << "the model has the rollback behind it";
  EXPECT_EQ(second.losses(), 1) << "and lives on";
  EXPECT_EQ(rollbacks_in_model(), 1);
}

TEST_F(ClusterDivergence, WhatOnRollbackHasNotDoneIsMadeUpFor) {
  TrainingProgram second(cluster_, {.task = kWorker1, .is_chief = false});
  {
    WatchfulChief chief(cluster_, {.on_rollback_fails = true});
    ASSERT_TRUE(go_on(chief, second));
    spoil();
    ASSERT_TRUE(ended(chief));
    EXPECT_THAT(chief.error(), HasSubstr("on_rollback fails"));
  }
  EXPECT_TRUE(journal().is_under_way()) << "the model was restored, but has not trained";
  WatchfulChief again(cluster_, {});
  ASSERT_TRUE(go_on(again, second));
  EXPECT_EQ(again.told(), 1);
  EXPECT_EQ(rollbacks_in_model(), 1);
  expect_whole_model(1);
}

TEST_F(ClusterDivergence, AManagerThatKeepsTheBadModelIsRefused) {
  TrainingProgram second(cluster_, {.task = kWorker1, .is_chief = false});
  {
    WatchfulChief chief(cluster_, {.after = After::kEnds});
    ASSERT_TRUE(go_on(chief, second));
    spoil();
    ASSERT_TRUE(ended(chief));
  }
  WatchedModel model;
  SessionManager own({.graph = &model.graph,
                      .ready_op = ops::report_uninitialized_variables(model.root, ops::global_variables(model.graph)),
                      .coordinator = Coordinator({.clock = &cluster_.clock()})});
  Supervisor sv({.graph = &model.graph,
                 .logdir = cluster_.logdir(),
                 .save_summaries_secs = Seconds{0},
                 .session_manager = &own,
                 .services = {.divergence = DivergenceOptions{.keep_in_checkpoints = false}},
                 .clock = &cluster_.clock()});
  try {
    sv.managed_session([](Session&) {}, {.master = kWorker});
    ADD_FAILURE() << "it trains on";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("drops_model"));
  }
}

TEST_F(ClusterDivergence, ASupervisorSaysWhichOptionServersNeed) {
  WatchedModel model;
  Supervisor sv({.graph = &model.graph,
                 .logdir = cluster_.logdir(),
                 .services = {.divergence = DivergenceOptions{}},
                 .clock = &cluster_.clock()});
  try {
    sv.managed_session([](Session&) { ADD_FAILURE() << "it trains"; }, {.master = kWorker});
    ADD_FAILURE() << "it trains";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("keep_in_checkpoints to false"));
  }
}

INSTANTIATE_TEST_SUITE_P(OfBothFrontEnds, ClusterDivergenceOf,
                         ::testing::Values(FrontEnd::kSupervisor, FrontEnd::kMonitored), [](const auto& info) {
                           return info.param == FrontEnd::kMonitored ? "Monitored" : "Supervisor";
                         });

}  // namespace
}  // namespace longhaul
