#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "longhaul/base/no_steps_expected.h"
#include "longhaul/base/waiting.h"
#include "longhaul/session/step_watch.h"
#include "longhaul/status/http_client_fixture.h"
#include "longhaul/train/bad_disk_fixture.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// A session that can tell how many steps it has made.
class CountingSession : public testing::ScriptedSession, StepWatching {
 public:
  CountingSession(Graph& graph, std::shared_ptr<Variables> variables, const std::atomic<uint64_t>& steps, bool sees_all)
      : ScriptedSession(graph, std::move(variables)), steps_(steps), sees_all_(sees_all) {
    on("RestoreV2", restore_tensors);
  }
  SessionCapabilities capabilities() override {
    SessionCapabilities all = ScriptedSession::capabilities();
    all.step_watching = this;
    return all;
  }

 private:
  std::shared_ptr<const void> watch_steps(StepWatch) override { return nullptr; }
  bool sees_all_steps() const override { return sees_all_; }
  bool is_step_under_way() const override { return false; }
  uint64_t steps_ended() const override { return steps_; }

  const std::atomic<uint64_t>& steps_;
  const bool sees_all_;
};

class HangsTest : public SupervisorFixture {
 protected:
  HangsTest() {
    add_step();
    install_session_factory([this](const std::string&, Graph& made_for, const SessionOptions&) {
      auto session = std::make_unique<CountingSession>(made_for, server, steps, sees_all);
      last_session = session.get();
      return session;
    });
  }

  void make_step(Session& session) {
    session.run(train);
    ++steps;
  }
  void pass(Seconds time) { clock.advance_before_hang_watch(time, Seconds{2}); }
  bool has_said(const std::string& what) const { return log.text(LogLevel::kWarning).find(what) != std::string::npos; }
  bool hangs() const { return has_said("the training hangs"); }
  // As a training does that waits for its input, until the test is content.
  void wait_for_what_never_comes() {
    const Waiting waiting("an element of the queue", "fifo_queue");
    eventually([&] {
      pass(Seconds{10});
      return hangs();
    });
  }

  std::atomic<uint64_t> steps{0};
  bool sees_all = true;
  const LogRecorder log;
};

TEST_F(HangsTest, ATrainingIsWatchedByDefault) {
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    make_step(session);
    wait_for_what_never_comes();
  });
  EXPECT_THAT(log.text(LogLevel::kError),
              AllOf(HasSubstr("limit 10 min"), HasSubstr("waits for an element of the queue fifo_queue since "),
                    HasSubstr("HangsTest::wait_for_what_never_comes()"), HasSubstr("lh-journal")));
  restart();
  const std::string journal = read_file(FileSystem::real(), journal_path(directory.path()));
  EXPECT_EQ(parse_run_journal(journal).history.runs().back().hangs, 1);
}

TEST_F(HangsTest, TheStatusPageTellsOfItAndWhereTheThreadsAre) {
  options.chief.status.address = "127.0.0.1:0";
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    const std::string said = log.text(LogLevel::kInfo), url = "http://127.0.0.1:";
    const int port = std::atoi(said.c_str() + said.find(url) + url.size());
    make_step(session);
    EXPECT_EQ(status_of(fetch(port, "GET", "/healthz")), 200);
    wait_for_what_never_comes();
    const std::string health = fetch(port, "GET", "/healthz");
    EXPECT_EQ(status_of(health), 503);
    EXPECT_THAT(body_of(health), ContainsRegex("hung: no step for [0-9]+ s"));
    EXPECT_THAT(body_of(fetch(port, "GET", "/stacks")), HasSubstr("HangsTest_TheStatusPage"));
    make_step(session);
    eventually([&] {
      pass(Seconds{10});
      return status_of(fetch(port, "GET", "/healthz")) == 200;
    });
  });
}

TEST_F(HangsTest, AWorkerIsWatchedToo) {
  Graph workers;
  const Variable v = ops::variable(Scope(workers).with_device("/job:localhost"), "v", Tensor::scalar(1.0f));
  options.graph = &workers;
  options.is_chief = false;
  Supervisor sv(options);
  make_scripted_session(workers, server)->run(v.initializer());
  sv.managed_session([&](Session&) { wait_for_what_never_comes(); });
}

TEST_F(HangsTest, ASlowTrainingIsNot) {
  options.services.hang = {.after = Seconds{20}, .median_steps = 20};
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    for (int i = 0; i < 5; ++i) {
      make_step(session);
      pass(Seconds{10});
    }
    make_step(session);
    pass(Seconds{100});
    EXPECT_FALSE(hangs());
    wait_for_what_never_comes();
  });
}

TEST_F(HangsTest, AnEvaluationIsNoHang) {
  options.services.hang.after = Seconds{20};
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    make_step(session);
    const NoStepsExpected evaluating;
    pass(Seconds{200});
  });
  EXPECT_FALSE(hangs());
}

TEST_F(HangsTest, InitialisationIsNoHang) {
  options.services.hang.after = Seconds{20};
  options.init_fn = [&](Session&) { pass(Seconds{200}); };
  Supervisor sv(options);
  sv.managed_session([&](Session& session) { make_step(session); });
  EXPECT_FALSE(hangs());
}

TEST_F(HangsTest, TheEndIsNoHang) {
  options.services.hang.after = Seconds{20};
  options.save_model_secs = Seconds{0};  // no service saves
  Supervisor sv(options);
  const auto slow = sv.saver()->on_saved([&](const std::string&) { pass(Seconds{200}); });
  sv.managed_session([&](Session& session) { make_step(session); });
  EXPECT_TRUE(exists(directory.file("model.ckpt-1")));
  EXPECT_FALSE(hangs());
}

// By the thread that trains, on a disk that does not answer. (A hook's save has an hour.)
TEST_F(HangsTest, ASaveThatHangsIsToldWithThePlaceWhereItIs) {
  BadDisk disk;
  disk.before_rename = [&](const std::string&, const std::string& to) {
    if (!to.ends_with(".index") || hangs()) return;
    eventually([&] {
      pass(Seconds{10});
      return hangs();
    });
  };
  options.files = &disk;
  options.save_model_secs = Seconds{0};  // no service saves
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    make_step(session);
    sv.saver()->save(session, sv.save_path(), step);
  });
  EXPECT_THAT(log.text(LogLevel::kError),
              AllOf(HasSubstr("the training hangs"), HasSubstr("BadDisk::rename"), HasSubstr("longhaul::Saver::save")));
  EXPECT_TRUE(exists(directory.file("model.ckpt-1"))) << "it went on";
}

TEST_F(HangsTest, AChiefWhoseStepsOthersMakeMissesNone) {
  options.services.hang.after = Seconds{20};
  sees_all = false;
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    pass(Seconds{200});
    EXPECT_FALSE(hangs());
    make_step(session);
    wait_for_what_never_comes();
  });
}

TEST_F(HangsTest, AProcessWithoutServicesIsNotWatched) {
  options.services.hang.after = Seconds{20};
  Supervisor sv(options);
  sv.managed_session([&](Session&) { pass(Seconds{200}); }, {.start_standard_services = false});
  EXPECT_FALSE(hangs());
}

TEST_F(HangsTest, RefusesWhatIsNoTime) {
  options.services.hang.kill_after = Seconds{-1};
  EXPECT_THROW(Supervisor{options}, InvalidArgumentError);
}

// In a process of its own, by the machine's clock.
TEST_F(HangsTest, ThatIsTooLongEndsTheProcessAndTheNextRunGoesOnFromTheCheckpoint) {
  options.clock = &Clock::real();
  options.services.hang = {.after = Seconds{0.2}, .median_steps = 0, .kill_after = Seconds{0.4}};
  options.save_model_secs = Seconds{0};  // no service saves
  const pid_t child = fork();
  if (child == 0) {
    Supervisor sv(options);
    sv.managed_session([&](Session& session) {
      make_step(session);
      make_step(session);
      sv.saver()->save(session, sv.save_path(), step);
      make_step(session);
      Mutex mutex;
      CondVar never;
      MutexLock lock(mutex);
      while (true) never.wait(mutex);
    });
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), kHungStatus);
  restart();
  options.services.hang = {};
  int64_t step_of_restart = -1;
  Supervisor sv(options);
  sv.managed_session([&](Session& session) { step_of_restart = read_global_step(session, step); });
  EXPECT_EQ(step_of_restart, 2);
  const auto runs = parse_run_journal(read_file(FileSystem::real(), journal_path(directory.path()))).history.runs();
  ASSERT_EQ(runs.size(), 2);
  EXPECT_EQ(runs[0].end, PastRun::End::kDisturbed);
  EXPECT_EQ(runs[0].hangs, 1);
  EXPECT_THAT(runs[0].why, HasSubstr("the training hung"));
}

}  // namespace
}  // namespace longhaul
