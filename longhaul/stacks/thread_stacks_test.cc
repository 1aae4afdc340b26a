#include "longhaul/stacks/thread_stacks.h"

#include <gmock/gmock.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <thread>

#include "longhaul/base/thread.h"
#include "longhaul/base/waiting.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Threads that wait until the test ends.
class ThreadStacksTest : public ::testing::Test {
 protected:
  ~ThreadStacksTest() override {
    {
      MutexLock lock(mutex_);
      is_over_ = true;
      changed_.notify_all();
    }
    threads_.clear();
  }
  void start(const std::string& name, const char* waits_for, bool blocks_signals = false) {
    threads_.push_back(std::make_unique<NamedThread>(name, [this, waits_for, blocks_signals] {
      sigset_t all;
      sigfillset(&all);
      if (blocks_signals) pthread_sigmask(SIG_BLOCK, &all, nullptr);
      wait_here(waits_for);
    }));
    while (waiting_ < threads_.size()) std::this_thread::yield();
  }
  __attribute__((noinline)) void wait_here(const char* waits_for) {
    const Waiting waiting(waits_for, "some_name");
    MutexLock lock(mutex_);
    ++waiting_;
    while (!is_over_) changed_.wait(mutex_);
  }
  static StackLimits unhurried() { return {.all = Seconds{60}, .each = Seconds{20}}; }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool is_over_ = false;
  std::atomic<size_t> waiting_{0};
  std::vector<std::unique_ptr<NamedThread>> threads_;
};

TEST_F(ThreadStacksTest, NamesTheThreadWhatItWaitsForAndItsCalls) {
  start("train", "an element of the queue");
  const ThreadStacks stacks = stacks_of_threads(unhurried());
  const auto found = std::find_if(stacks.threads.begin(), stacks.threads.end(),
                                  [](const ThreadStack& thread) { return thread.name == "train"; });
  ASSERT_NE(found, stacks.threads.end());
  EXPECT_EQ(found->waits_for, "an element of the queue some_name");
  EXPECT_EQ(found->stack.answer, RawStack::Answer::kHere);
  EXPECT_THAT(describe(stacks),
              AllOf(ContainsRegex("thread [0-9]+ train, sleeps, waits for an element of the queue some_name since "
                                  "[0-9.e-]+ s"),
                    ContainsRegex("\n  [^\n]*ThreadStacksTest::wait_here\\(char const\\*\\)")));
}

TEST_F(ThreadStacksTest, LeavesOutTheThreadThatAsks) {
  for (const ThreadStack& thread : stacks_of_threads(unhurried()).threads) {
    EXPECT_NE(thread.thread, syscall(SYS_gettid));
  }
}

TEST_F(ThreadStacksTest, AThreadThatBlocksSignalsIsThereWithoutAStack) {
  start("stubborn", "nothing in", /*blocks_signals=*/true);
  EXPECT_THAT(describe(stacks_of_threads(unhurried())),
              ContainsRegex("stubborn, sleeps, waits for nothing in some_name since [^\n]*\n  no stack: it blocks "
                            "signals\n"));
}

TEST_F(ThreadStacksTest, ThreadsInTheSamePlaceAreToldTogether) {
  for (int i = 0; i < 20; ++i) start("pool", "the next of the");
  EXPECT_THAT(describe(stacks_of_threads(unhurried())),
              ContainsRegex("20 threads in the same place, sleeps: ([0-9]+ pool, ){7}[0-9]+ pool and 12 more, wait for "
                            "the next of the some_name"));
}

TEST_F(ThreadStacksTest, ManyThreadsAreCounted) {
  for (int i = 0; i < 10; ++i) start("pool", "the next of the");
  const ThreadStacks stacks = stacks_of_threads({.all = Seconds{60}, .each = Seconds{20}, .threads = 3});
  EXPECT_EQ(stacks.threads.size(), 3);
  EXPECT_GE(stacks.others, 7);
  EXPECT_THAT(describe(stacks), ContainsRegex("and [0-9]+ more threads\n$"));
}

TEST_F(ThreadStacksTest, WithoutTimeNobodyIsAsked) {
  start("train", "x");
  const ThreadStacks stacks = stacks_of_threads({.all = Seconds{0}});
  EXPECT_TRUE(stacks.threads.empty());
  EXPECT_GE(stacks.others, 1);
}

TEST_F(ThreadStacksTest, TheTextIsBounded) {
  for (int i = 0; i < 10; ++i) {
    start("t" + std::to_string(i), i % 2 == 0 ? "this" : "that");
  }
  const ThreadStacks stacks = stacks_of_threads(unhurried());
  EXPECT_THAT(describe(stacks, {.bytes = 10}), HasSubstr("more threads\n"));
  EXPECT_THAT(describe(stacks), Not(HasSubstr("more threads\n")));
}

}  // namespace
}  // namespace longhaul
