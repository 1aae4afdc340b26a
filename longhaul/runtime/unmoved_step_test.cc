// Trainings whose global step stands still, or whose variables change after the last step, on real sessions: what is
// lost in a kill, and what the last checkpoint has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "longhaul/ops/external_variable.h"
#include "longhaul/ops/ops.h"
#include "longhaul/runtime/install.h"
#include "longhaul/train/monitored/monitored_training_session.h"
#include "longhaul/train/supervisor/supervisor.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A model with one weight, which each run of `train` adds one to, and a global step that only `count` moves; and
// numbers of the program's own, which nobody tells the session of.
class Model {
 public:
  Model() {
    own_ = ops::external_variable(
        root_, "own",
        {.dtype = kFloat,
         .shape = {4},
         .read = [this] { return Tensor::of(numbers); },
         .assign = [this](const Tensor& value) { std::memcpy(numbers.data(), value.data(), value.size_bytes()); },
         .initial = [] { return Tensor::of<float>({0, 0, 0, 0}); }});
  }

  Graph graph;
  std::vector<float> numbers = std::vector<float>(4);

 private:
  Scope root_{graph};
  Variable own_;

 public:
  Variable weight = ops::variable(root_, "weight", Tensor::scalar(0.0f));
  Variable step = ops::create_global_step(root_);
  Operation train = ops::assign_add(root_, weight, ops::constant(root_, 1.0f)).op();
  Operation count = ops::assign_add(root_, step, ops::constant(root_, int64_t{1})).op();
  Operation swap_in = ops::assign(root_, weight, ops::constant(root_, 77.0f)).op();
};

class UnmovedStepOfRealSessions : public ::testing::Test {
 protected:
  SupervisorOptions supervised(Model& model) {
    return {.graph = &model.graph, .logdir = directory.path(), .save_summaries_secs = Seconds{0}, .clock = &clock};
  }
  MonitoredTrainingSessionOptions monitored(Model& model) {
    return {.graph = &model.graph,
            .checkpoint_dir = directory.path(),
            .save_checkpoint_secs = SaveInterval(Seconds{600}),
            .save_summaries_steps = int64_t{0},
            .log_step_count_steps = 0,
            .coordinator = Coordinator({.clock = &clock})};
  }
  Tensor saved(int step, const std::string& name) {
    return BundleReader(FileSystem::real(), directory.file("model.ckpt-" + std::to_string(step))).read(name);
  }
  float saved_weight(int step = 0) { return saved(step, "weight").item<float>(); }
  // A service may be replacing it: then its index and its data do not fit together for a moment, or one is not there.
  bool is_saved_weight(float wanted) {
    try {
      return saved_weight() == wanted;
    } catch (const Error&) {
      return false;
    }
  }
  template <typename Condition>
  static void eventually(Condition&& condition) {
    const Seconds deadline = Clock::real().now() + Seconds{20};
    while (!condition() && Clock::real().now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(condition());
  }

  testing::TemporaryDirectory directory;
  testing::FakeClock clock;
};

TEST_F(UnmovedStepOfRealSessions, ASupervisedOneGoesOnAfterEachKill) {
  float kept = 0;
  for (int run = 0; run < 3; ++run) {
    Model model;
    Supervisor sv(supervised(model));
    const auto session = sv.prepare_or_wait_for_session();
    EXPECT_EQ(session->run(model.weight).item<float>(), kept);
    if (run == 0) eventually([&] { return !sv.saver()->last_saved().empty(); });
    for (int i = 0; i < 10; ++i) session->run(model.train);
    const float trained = session->run(model.weight).item<float>();
    eventually([&] {
      clock.advance(Seconds{600});
      return is_saved_weight(trained);
    });
    kept = trained;  // and a kill
  }
}

TEST_F(UnmovedStepOfRealSessions, AMonitoredOneGoesOnAfterEachKill) {
  for (int run = 0; run < 3; ++run) {
    Model model;
    const LogRecorder log;
    EXPECT_THROW(monitored_training_session(monitored(model),
                                            [&](MonitoredSession& session) {
                                              EXPECT_EQ(session.run(model.weight).item<float>(),
                                                        static_cast<float>(10 * run));
                                              for (int i = 0; i < 9; ++i) session.run(model.train);
                                              clock.advance(Seconds{600});
                                              session.run(model.train);
                                              session.run(model.train);
                                              throw InternalError("the kill");
                                            }),
                 InternalError);
    EXPECT_EQ(saved_weight(), static_cast<float>(10 * (run + 1)));
    EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("the global step is still 0"));
  }
}

TEST_F(UnmovedStepOfRealSessions, AMonitoredOneThatSavesBySteps) {
  Model model;
  auto by_steps = monitored(model);
  by_steps.save_checkpoint_secs = kNone;
  by_steps.save_checkpoint_steps = int64_t{2};
  EXPECT_THROW(monitored_training_session(by_steps,
                                          [&](MonitoredSession& session) {
                                            for (int i = 0; i < 2500; ++i) session.run(model.train);
                                            throw InternalError("the kill");
                                          }),
               InternalError);
  EXPECT_EQ(saved_weight(), 2000);
}

TEST_F(UnmovedStepOfRealSessions, TheLastCheckpointHasWhatCameAfterTheLastTimedOne) {
  Model model;
  Supervisor sv(supervised(model));
  sv.managed_session([&](Session& session) {
    eventually([&] { return !sv.saver()->last_saved().empty(); });
    session.run({model.train, model.count});
    clock.advance(Seconds{600});
    eventually([&] { return sv.saver()->last_saved() == directory.file("model.ckpt-1"); });
    EXPECT_EQ(saved_weight(1), 1);
    session.run(model.swap_in);
    model.numbers[3] = 5;  // behind everybody's back
  });
  EXPECT_EQ(saved_weight(1), 77);
  EXPECT_EQ(saved(1, "own").flat<float>()[3], 5);
}

TEST_F(UnmovedStepOfRealSessions, TheLastCheckpointOfAMonitoredOneHasIt) {
  Model model;
  auto every_step = monitored(model);
  every_step.save_checkpoint_secs = kNone;
  every_step.save_checkpoint_steps = int64_t{1};
  const LogRecorder log;
  monitored_training_session(every_step, [&](MonitoredSession& session) {
    session.run(std::vector<Fetch>{model.train, model.count});
    EXPECT_EQ(saved_weight(1), 1);
    session.run(model.swap_in);
    model.numbers[3] = 5;
  });
  EXPECT_EQ(saved_weight(1), 77);
  EXPECT_EQ(saved(1, "own").flat<float>()[3], 5);
  EXPECT_THAT(log.text(LogLevel::kWarning), Not(HasSubstr("still"))) << "it is no step that was forgotten";
}

TEST_F(UnmovedStepOfRealSessions, ARestartThatOnlyDrawsRandomNumbersHasForgottenNoStep) {
  for (int run = 0; run < 2; ++run) {
    Model model;
    const Output noise = ops::randn(Scope(model.graph), {2});
    const LogRecorder log;
    Supervisor sv(supervised(model));
    sv.managed_session([&](Session& session) {
      if (run == 0) session.run({model.train, model.count});
      session.run(noise);  // as an evaluation does
    });
    EXPECT_THAT(log.text(LogLevel::kWarning), Not(HasSubstr("still")));
    const bool says_so =
        log.text().find("no step was made since " + directory.file("model.ckpt-1")) != std::string::npos;
    EXPECT_TRUE(says_so || run == 0) << "at first, a service may have saved between the step and the evaluation";
    EXPECT_EQ(saved_weight(1), 1);
  }
}

TEST_F(UnmovedStepOfRealSessions, ARestartThatMakesNoStepWritesNothing) {
  const auto written = [&] { return FileSystem::real().modified_at(directory.file("model.ckpt-1.index")); };
  double before = 0;
  for (int run = 0; run < 3; ++run) {
    Model supervised_model, monitored_model;
    Supervisor sv(supervised(supervised_model));
    const LogRecorder log;
    sv.managed_session([&](Session& session) {
      if (run == 0) session.run({supervised_model.train, supervised_model.count});
    });
    if (run == 0) before = written();
    monitored_training_session(monitored(monitored_model),
                               [](MonitoredSession& session) { session.run("global_step:0"); });
    EXPECT_EQ(written(), before);
    const bool says_so = log.text().find("Saving checkpoint") != std::string::npos;
    EXPECT_EQ(says_so, run == 0);
  }
}

}  // namespace
}  // namespace longhaul
