#include <fmt/format.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/status/http_client_fixture.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/train/hooks/stop_at_step_hook.h"
#include "longhaul/train/monitored/monitored_fixture.h"
#include "longhaul/train/monitored/monitored_training_session.h"
#include "longhaul/train/status/metrics_parser_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

constexpr char kMonitoredToken[] = "0123456789abcdef0123";

class MonitoredStatusTest : public MonitoredFixture {
 protected:
  MonitoredStatusTest()
      : sink_(set_log_sink([this](LogLevel, const std::string& message) {
          const size_t at = message.find("http://127.0.0.1:");
          if (message.starts_with("status page") && at != message.npos) port = std::atoi(message.c_str() + at + 17);
        })) {
    const std::string token = secrets.path() + "/token";
    std::ofstream(token) << kMonitoredToken << "\n";
    ::chmod(token.c_str(), 0600);
    training = {.graph = &graph,
                .checkpoint_dir = directory.path(),
                .save_checkpoint_secs = Seconds{1e6},
                .chief = {.status = {.address = "127.0.0.1:0", .token_file = token}},
                .failures = {.restart = options.restart},
                .coordinator = coordinator};
  }
  ~MonitoredStatusTest() override { set_log_sink(sink_); }

  int get(const std::string& path) const { return status_of(fetch(port, "GET", path)); }
  int post(const std::string& path) const {
    return status_of(fetch(port, "POST", path, fmt::format("Authorization: Bearer {}\r\n", kMonitoredToken)));
  }
  std::map<std::string, ParsedMetric> metrics() const { return parse_metrics(body_of(fetch(port, "GET", "/metrics"))); }
  bool is_saved(int64_t at) {
    return checkpoint_exists(FileSystem::real(), directory.file(fmt::format("model.ckpt-{}", at)));
  }

  testing::TemporaryDirectory secrets;
  std::atomic<int> port{0};
  MonitoredTrainingSessionOptions training;

 private:
  const LogSink sink_;
};

TEST_F(MonitoredStatusTest, TellsStepAndTarget) {
  training.hooks = {std::make_shared<StopAtStepHook>(StopAtStepHookOptions{.num_steps = 50})};
  monitored_training_session(training, [&](MonitoredSession& session) {
    EXPECT_EQ(get("/healthz"), 200);
    EXPECT_EQ(get("/readyz"), 200);
    for (int i = 0; i < 3; ++i) {
      session.run(train);
      clock.advance(Seconds{1});
    }
    const auto all = metrics();
    EXPECT_EQ(all.at("longhaul_step").value(), 3);
    EXPECT_EQ(all.at("longhaul_target_step").value(), 50);
    EXPECT_DOUBLE_EQ(all.at("longhaul_steps_per_second").value(), 1.5);
    EXPECT_EQ(all.at("longhaul_saves_total").value(), 1);
    EXPECT_EQ(all.at("longhaul_runs_total").value(), 1);
  });
}

TEST_F(MonitoredStatusTest, TellsOfAHang) {
  monitored_training_session(training, [&](MonitoredSession& session) {
    session.run(train);
    EXPECT_EQ(get("/healthz"), 200);
    eventually([&] {
      clock.advance(Seconds{1});
      return get("/healthz") == 503;
    });
    session.run(train);
    eventually([&] {
      clock.advance(Seconds{1});
      return get("/healthz") == 200;
    });
  });
}

TEST_F(MonitoredStatusTest, ACheckpointIsSavedAfterTheNextStep) {
  monitored_training_session(training, [&](MonitoredSession& session) {
    session.run(train);
    EXPECT_EQ(post("/checkpoint"), 202);
    EXPECT_FALSE(is_saved(2));
    session.run(train);
    EXPECT_TRUE(is_saved(2));
    EXPECT_FALSE(session.should_stop());
    session.run(train);
    EXPECT_FALSE(is_saved(3));
  });
}

TEST_F(MonitoredStatusTest, AStopEndsTrainingWithALastCheckpoint) {
  monitored_training_session(training, [&](MonitoredSession& session) {
    EXPECT_EQ(post("/stop"), 202);
    EXPECT_TRUE(session.should_stop());
    session.run(train);
  });
  EXPECT_TRUE(is_saved(1));
}

TEST_F(MonitoredStatusTest, ALostSessionIsNotReadyAndHealthy) {
  int health = 0, ready = 0;
  on_session = [&] {
    if (sessions < 1) return;  // of the first one
    health = get("/healthz");
    ready = get("/readyz");
  };
  bool is_lost = false;
  const Operation loses = code([&] {
    if (!std::exchange(is_lost, true)) throw AbortedError("preempted");
  });
  monitored_training_session(training, [&](MonitoredSession& session) {
    session.run(loses);
    EXPECT_EQ(get("/readyz"), 200);
  });
  EXPECT_EQ(health, 200);
  EXPECT_EQ(ready, 503);
}

TEST_F(MonitoredStatusTest, WithoutCheckpointsItServesToo) {
  training.checkpoint_dir.clear();
  training.save_checkpoint_secs = kNone;
  monitored_training_session(training, [&](MonitoredSession& session) {
    session.run(train);
    EXPECT_EQ(get("/readyz"), 200);
    EXPECT_EQ(post("/checkpoint"), 409);
  });
}

TEST_F(MonitoredStatusTest, AWorkerServesToo) {
  const auto server = std::make_shared<testing::ScriptedSession::Variables>();
  install_session_factory([&](const std::string&, Graph& made_for, const SessionOptions&) {
    return make_scripted_session(made_for, server);
  });
  MonitoredSession chief(monitored_session_options(training));
  const int port_of_chief = port;
  training.is_chief = false;
  monitored_training_session(training, [&](MonitoredSession& worker) {
    EXPECT_NE(port, port_of_chief);
    train_once(worker);
    EXPECT_EQ(get("/readyz"), 200);
    EXPECT_EQ(post("/checkpoint"), 409) << "its chief saves";
    EXPECT_EQ(metrics().count("longhaul_runs_total"), 0u) << "the journal is its chief's";
  });
}

TEST_F(MonitoredStatusTest, WrongOptionsAreRefusedBeforeTraining) {
  training.chief.status.address = "0.0.0.0:0";
  training.chief.status.token_file.clear();
  EXPECT_THAT(refusal_of([&] { monitored_training_session(training, [](MonitoredSession&) { FAIL(); }); }),
              HasSubstr("others can reach"));
}

}  // namespace
}  // namespace longhaul
