#include "longhaul/train/hangs/hang_watch.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <optional>
#include <thread>

#include "longhaul/base/no_steps_expected.h"
#include "longhaul/base/waiting.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/no_new_threads_fixture.h"
#include "longhaul/testing/threads_end_fixture.h"
#include "longhaul/train/reporting/event_lines_fixture.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// A training on a thread of its own, which waits for a condition that nobody fulfils, and the watch of it. Time stands
// still unless a test moves it.
class HangWatchTest : public ::testing::Test {
 protected:
  HangWatchTest() {
    records_.journal = std::make_shared<RunJournal>(directory_.path(), RunJournalOptions{.clock = &clock_});
    records_.writer = std::make_shared<FileWriter>(directory_.path(), FileWriterOptions{.clock = &clock_});
    records_.journal->begin();
    records_.journal->training(40);
  }
  ~HangWatchTest() override {
    let_go();
    training_.join();
  }
  void watch(const HangOptions& options = {}) {
    watch_.emplace(options, clock_,
                   WatchedTraining{.steps = [this] { return steps_.load(); },
                                   .records = records_,
                                   .end_process = [this](bool take_core) { ends_ += take_core ? 100 : 1; }});
  }
  void let_go() {
    MutexLock lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }
  __attribute__((noinline)) void wait_for_what_never_comes() {  // stacks are to name it
    const Waiting waiting("an element of the queue", "fifo_queue");
    MutexLock lock(mutex_);
    while (!is_over_) changed_.wait(mutex_);
  }
  // In pieces, each of which the watch has seen.
  template <typename Condition>
  void pass_until(Condition&& condition) {
    const Seconds deadline = Clock::real().now() + Seconds{60};
    while (!condition() && Clock::real().now() < deadline) pass(Seconds{1});
    EXPECT_TRUE(condition());
  }
  void pass(Seconds time) { clock_.advance_before_hang_watch(time); }
  bool has_said(const std::string& what) const { return log_.text(LogLevel::kWarning).find(what) != std::string::npos; }
  std::vector<PastRun> runs() const { return records_.journal->history().runs(); }

  testing::TemporaryDirectory directory_;
  testing::FakeClock clock_;
  const ThreadsEnd threads_end_;
  const LogRecorder log_;
  HangRecords records_;
  std::atomic<uint64_t> steps_{3};
  std::atomic<int> ends_{0};
  Mutex mutex_;
  CondVar changed_;
  bool is_over_ GUARDED_BY(mutex_) = false;
  NamedThread training_{"train", [this] { wait_for_what_never_comes(); }};
  std::optional<HangWatch> watch_;
};

TEST_F(HangWatchTest, SaysWhichThreadWaitsForWhatAndWhere) {
  watch();
  pass_until([&] { return has_said("the training hangs at step 40 or soon after: no step for "); });
  watch_.reset();
  EXPECT_THAT(log_.text(LogLevel::kError),
              AllOf(HasSubstr("limit 10 min"),
                    ContainsRegex("thread [0-9]+ train, sleeps, waits for an element of the queue fifo_queue since "),
                    ContainsRegex("\n  [^\n]*HangWatchTest::wait_for_what_never_comes\\(\\)")));
  EXPECT_EQ(ends_, 0);
}

TEST_F(HangWatchTest, TheJournalAndTheEventsHaveIt) {
  watch();
  pass_until([&] { return runs().back().hangs > 0; });
  watch_.reset();
  records_.writer->close();
  EXPECT_EQ(runs().back().hangs, 1);
  std::string texts;
  for (const proto::Event& event : events_in_directory(directory_.path())) {
    for (const proto::Summary::Value& value : event.summary().value()) {
      if (value.tag() != kHangTag) continue;
      EXPECT_EQ(event.step(), 40);
      texts += value.tensor().string_val(0);
    }
  }
  EXPECT_THAT(texts, AllOf(HasSubstr("the training hangs"), HasSubstr("wait_for_what_never_comes")));
}

TEST_F(HangWatchTest, SaysThatTheTrainingGoesOn) {
  watch();
  pass_until([&] { return has_said("the training hangs"); });
  ++steps_;
  pass_until([&] { return has_said("the training continues, after it hung for "); });
}

TEST_F(HangWatchTest, SaysSoAgainOnceItHasLastedTwiceAsLong) {
  watch();
  pass_until([&] { return has_said("the training still hangs at step 40 or soon after: no step for 20"); });
  EXPECT_EQ(runs().back().hangs, 1) << "it is the same one";
}

TEST_F(HangWatchTest, ATrainingThatMakesStepsIsNotReported) {
  watch({.after = Seconds{10}});
  for (int i = 0; i < 100; ++i) {
    ++steps_;
    pass(Seconds{5});
  }
  watch_.reset();
  EXPECT_FALSE(has_said("hangs"));
}

TEST_F(HangWatchTest, AnEvaluationIsNotReported) {
  watch({.after = Seconds{10}});
  {
    const NoStepsExpected evaluating;
    pass(Seconds{500});
  }
  EXPECT_FALSE(has_said("hangs"));
  pass_until([&] { return has_said("hangs"); });
}

TEST_F(HangWatchTest, ThatIsTooLongIsRecordedAndThenEndsTheProcess) {
  watch({.after = Seconds{10}, .kill_after = Seconds{30}});
  pass_until([&] { return ends_ > 0; });
  watch_.reset();
  EXPECT_EQ(ends_, 1);
  EXPECT_TRUE(has_said("The process ends with status 79 (HangOptions::kill_after)"));
  RunJournal next(directory_.path(), {.clock = &clock_});
  next.begin();
  const PastRun run = next.history().runs().front();
  EXPECT_EQ(run.end, PastRun::End::kDisturbed) << "not the checkpoint's fault";
  EXPECT_EQ(run.hangs, 1);
  EXPECT_THAT(run.why, HasSubstr("the training hung: no step for "));
}

TEST_F(HangWatchTest, ACoreIsTakenWhereOneIsWanted) {
  watch({.after = Seconds{10}, .kill_after = Seconds{30}, .take_core = true});
  pass_until([&] { return ends_ > 0; });
  EXPECT_EQ(ends_, 100);
  EXPECT_TRUE(has_said("The process ends by SIGABRT"));
}

// The process really ends by SIGABRT, whatever handles that.
TEST_F(HangWatchTest, TheCoreOfAForkedChildIsThatOfTheKernel) {
#ifdef _GLIBCXX_TSAN
  LONGHAUL_NEEDS("forked_children", false, "under ThreadSanitizer no child of a process with threads can start one");
#endif
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{};
    ::setrlimit(RLIMIT_CORE, &none);
    std::signal(SIGABRT, [](int) { _exit(3); });
    const HangWatch watch({.after = Seconds{0.05}, .kill_after = Seconds{0.1}, .take_core = true}, Clock::real(),
                          {.steps = [] { return uint64_t{3}; }});
    Mutex mutex;
    CondVar never;
    MutexLock lock(mutex);
    while (true) never.wait(mutex);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGABRT);
}

TEST_F(HangWatchTest, ZeroSecondsAreNoWatch) {
  const int threads = NamedThread::running();
  watch({.after = Seconds{0}});
  EXPECT_EQ(NamedThread::running(), threads);
}

TEST_F(HangWatchTest, WithoutAThreadTheLogSaysSo) {
  const NoNewThreads none;
  watch();
  EXPECT_TRUE(has_said("nothing watches whether the training hangs"));
}

TEST_F(HangWatchTest, WithoutAJournalAndEventsTheLogHasIt) {
  records_ = {};
  watch();
  pass_until([&] { return has_said("the training hangs: no step for "); });
}

TEST_F(HangWatchTest, ADiskThatFailsLeavesTheLog) {
  records_.writer->close();
  watch();
  pass_until([&] { return has_said("the training hangs at step 40"); });
  EXPECT_THAT(log_.text(), Not(HasSubstr("is there")));
}

}  // namespace
}  // namespace longhaul
