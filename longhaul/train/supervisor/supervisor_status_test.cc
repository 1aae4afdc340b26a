#include <fmt/format.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "longhaul/base/log.h"
#include "longhaul/base/mutex.h"
#include "longhaul/status/http_client_fixture.h"
#include "longhaul/status/listener.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/train/bad_disk_fixture.h"
#include "longhaul/train/status/metrics_parser_fixture.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

constexpr char kStatusToken[] = "0123456789abcdef0123";

// The port in the last line of the log that names a page.
class SupervisorStatusTest : public SupervisorFixture {
 protected:
  SupervisorStatusTest()
      : sink_(set_log_sink([this](LogLevel, const std::string& message) {
          const size_t at = message.find("http://127.0.0.1:");
          if (message.starts_with("status page") && at != message.npos) port = std::atoi(message.c_str() + at + 17);
          if (message.starts_with("status page") && message.find("there is none yet") != message.npos) ++refusals;
        })) {
    add_step();
    const std::string token = secrets.path() + "/token";
    std::ofstream(token) << kStatusToken << "\n";
    ::chmod(token.c_str(), 0600);
    options.files = &files;
    options.summary_writer = &writer;
    options.chief.status = {.address = "127.0.0.1:0", .token_file = token, .last_step = 100};
  }
  ~SupervisorStatusTest() override { set_log_sink(sink_); }

  std::string post(const std::string& path) const {
    return fetch(port, "POST", path, fmt::format("Authorization: Bearer {}\r\n", kStatusToken));
  }
  // Metrics are made anew twice a second.
  std::map<std::string, ParsedMetric> metrics() const { return parse_metrics(body_of(fetch(port, "GET", "/metrics"))); }
  void eventually_metric(const std::string& name, double value) {
    eventually([&] {
      const auto all = metrics();
      return all.count(name) == 1 && all.at(name).value() == value;
    });
  }

  testing::TemporaryDirectory secrets;
  testing::FaultyFileSystem files;
  FileWriter writer{directory.path()};  // on another disk
  std::atomic<int> port{0}, refusals{0};

 private:
  const LogSink sink_;
};

TEST_F(SupervisorStatusTest, ServesFromThePreparationToTheEnd) {
  Supervisor sv(options);
  EXPECT_EQ(port, 0) << "before there is a session";
  sv.managed_session([&](Session& session) {
    session.run(train);
    EXPECT_EQ(status_of(fetch(port, "GET", "/healthz")), 200);
    EXPECT_EQ(status_of(fetch(port, "GET", "/readyz")), 200);
    const auto all = metrics();
    EXPECT_EQ(all.at("longhaul_ready").value(), 1);
    EXPECT_EQ(all.at("longhaul_target_step").value(), 100);
    EXPECT_EQ(all.at("longhaul_runs_total").value(), 1) << "of the journal";
  });
  Listener again(parse_listen_address(fmt::format("127.0.0.1:{}", port.load()), "address"));  // it is free
}

TEST_F(SupervisorStatusTest, KnowsTheStep) {
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    for (int i = 0; i < 7; ++i) session.run(train);
    clock.advance(Seconds{2});
    eventually_metric("longhaul_step", 7);
  });
}

TEST_F(SupervisorStatusTest, ACheckpointIsSavedOnRequest) {
  options.save_model_secs = Seconds{1e6};
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    eventually([&] { return exists(sv.save_path() + "-0"); });
    for (int i = 0; i < 3; ++i) session.run(train);
    EXPECT_EQ(status_of(post("/checkpoint")), 202);
    eventually([&] { return exists(sv.save_path() + "-3"); });
    EXPECT_FALSE(sv.should_stop());
    eventually_metric("longhaul_saves_total", 2);
    const auto all = metrics();
    EXPECT_GT(all.at("longhaul_last_save_bytes").value(), 0);
    EXPECT_EQ(all.count("longhaul_last_save_duration_seconds"), 1u);
    EXPECT_EQ(all.count("longhaul_last_save_stall_seconds"), 1u);
    EXPECT_GT(all.at("longhaul_start_time_seconds").value(), 0);
    EXPECT_THAT(body_of(fetch(port, "GET", "/status.json")), HasSubstr("model.ckpt-3"));
  });
}

TEST_F(SupervisorStatusTest, AStopEndsTrainingWithALastCheckpoint) {
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    EXPECT_EQ(status_of(post("/stop")), 202);
    while (!sv.should_stop()) std::this_thread::yield();
    session.run(train);
  });
  EXPECT_TRUE(exists(sv.save_path() + "-1"));
}

TEST_F(SupervisorStatusTest, IsNotReadyAndHealthyWhileTheLastCheckpointIsSaved) {
  Supervisor sv(options);
  int health = 0, ready = 0;
  std::shared_ptr<const SavedCallback> saving;
  sv.managed_session([&](Session& session) {
    eventually([&] { return exists(sv.save_path() + "-0"); });
    session.run(train);
    saving = sv.saver()->on_saved([&](const std::string&) {
      health = status_of(fetch(port, "GET", "/healthz"));
      ready = status_of(fetch(port, "GET", "/readyz"));
    });
  });
  EXPECT_EQ(health, 200);
  EXPECT_EQ(ready, 503);
}

TEST_F(SupervisorStatusTest, FailedSavesAreAMetricAndNoFailedProbe) {
  options.services.saves.first_wait = Seconds{1e6};
  options.save_model_secs = Seconds{1e6};
  options.services.save_at_end = false;
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    eventually([&] { return sv.save_status().successes == 1; });
    session.run(train);
    files.fail_writes_after(0);
    EXPECT_EQ(status_of(post("/checkpoint")), 202);
    eventually_metric("longhaul_failed_saves_total", 1);
    EXPECT_EQ(metrics().at("longhaul_consecutive_failed_saves").value(), 1);
    EXPECT_EQ(status_of(fetch(port, "GET", "/healthz")), 200);
  });
}

TEST_F(SupervisorStatusTest, ShowsTheScalarsOfItsEvents) {
  Supervisor sv(options);
  sv.managed_session([&](Session&) {
    sv.summary_writer()->add_scalar("loss", 0.5f, 1);
    eventually([&] {
      const auto all = metrics();
      return all.count("longhaul_scalar") == 1 && all.at("longhaul_scalar").samples.count({{"tag", "loss"}}) == 1;
    });
  });
}

TEST_F(SupervisorStatusTest, CopiesThatFailAreAMetricUntilTheMirrorIsBack) {
  testing::TemporaryDirectory place;
  BadDisk disk;
  std::atomic<bool> is_away{true};
  disk.before_rename = [&](const std::string&, const std::string& to) {
    if (is_away && to.starts_with(place.path())) throw UnavailableError("the mirror is away");
  };
  options.files = &disk;
  options.chief.mirror.directory = place.file("mirror");
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    session.run(train);
    eventually_metric("longhaul_mirror_consecutive_failed_copies", 1);
    EXPECT_EQ(metrics().at("longhaul_consecutive_failed_saves").value(), 0);
    is_away = false;
    eventually([&] {
      clock.advance(Seconds{60});
      const auto all = metrics();
      return all.at("longhaul_mirror_consecutive_failed_copies").value() == 0;
    });
  });
}

TEST_F(SupervisorStatusTest, ScalarsBeyondTheBoundAreCounted) {
  Supervisor sv(options);
  sv.managed_session([&](Session&) {
    for (int i = 0; i < 150; ++i) sv.summary_writer()->add_scalar(fmt::format("of_step_{}", i), 1, i);
    eventually([&] {
      const auto all = metrics();
      return all.at("longhaul_refused_scalars_total").value() >= 50 && all.at("longhaul_scalar").samples.size() == 100;
    });
  });
}

TEST_F(SupervisorStatusTest, AWorkerServesToo) {
  Supervisor(options).managed_session([&](Session& session) { session.run(train); });
  port = 0;
  Graph graph_of_worker;
  const Scope scope = Scope(graph_of_worker).with_device("/job:localhost");
  ops::variable(scope, "global_step", ops::constant(scope, Tensor::scalar(int64_t{0}), "start"), {.trainable = false});
  options.graph = &graph_of_worker;
  options.is_chief = false;
  Supervisor sv(options);
  sv.managed_session(
      [&](Session&) {
        EXPECT_EQ(status_of(fetch(port, "GET", "/readyz")), 200);
        EXPECT_EQ(status_of(post("/checkpoint")), 409) << "its chief saves";
        EXPECT_EQ(status_of(post("/stop")), 202);
        EXPECT_TRUE(sv.should_stop());
      },
      {.max_wait_secs = Seconds{0}});
}

TEST_F(SupervisorStatusTest, APortThatIsTakenEndsNoTraining) {
  Listener taken(parse_listen_address("127.0.0.1:0", "address"));
  options.chief.status.address = fmt::format("127.0.0.1:{}", taken.port());
  Supervisor sv(options);
  sv.managed_session([&](Session& session) { session.run(train); });
  EXPECT_GE(refusals, 1);
  EXPECT_TRUE(exists(sv.save_path() + "-1"));
}

TEST_F(SupervisorStatusTest, WrongOptionsAreRefusedAtConstruction) {
  options.chief.status.address = "nowhere";
  EXPECT_THAT(refusal_of([&] { Supervisor sv(options); }), HasSubstr("chief.status.address is \"nowhere\""));
}

TEST_F(SupervisorStatusTest, TwoSupervisorsOfAProcessHaveAPageEach) {
  Supervisor sv(options);
  sv.managed_session([&](Session&) {
    const int first = port;
    testing::TemporaryDirectory other_directory;
    Graph other;
    Scope scope(other);
    ops::create_global_step(scope);
    SupervisorOptions other_options{.graph = &other, .logdir = other_directory.path(), .clock = &clock};
    other_options.chief.status = options.chief.status;
    Supervisor second(other_options);
    second.managed_session([&](Session&) {
      EXPECT_NE(port, first);
      EXPECT_EQ(status_of(post("/stop")), 202);
      EXPECT_TRUE(second.should_stop());
      EXPECT_FALSE(sv.should_stop());
      EXPECT_EQ(status_of(fetch(first, "GET", "/readyz")), 200);
    });
  });
}

TEST_F(SupervisorStatusTest, WithoutAnAddressThereIsNone) {
  options.chief.status = {};
  Supervisor sv(options);
  const int before = NamedThread::running();
  sv.prepare_or_wait_for_session({.start_standard_services = false});
  EXPECT_LE(NamedThread::running(), before + 2) << "the lock's thread, and that of the events";
  EXPECT_EQ(port, 0);
  sv.stop();
}

}  // namespace
}  // namespace longhaul
