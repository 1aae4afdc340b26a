#include "longhaul/base/waiting.h"

#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>

namespace longhaul {
namespace {

std::optional<WaitOfThread> wait_of(int64_t thread) {
  for (const WaitOfThread& wait : waits_of_threads()) {
    if (wait.thread == thread) return wait;
  }
  return std::nullopt;
}

std::string own_wait() {
  const auto wait = wait_of(syscall(SYS_gettid));
  return wait ? wait->what : "";
}

TEST(Waiting, IsKnownToOthersWhileItLives) {
  EXPECT_EQ(own_wait(), "");
  {
    const Waiting waiting("an element of", "fifo_queue");
    EXPECT_EQ(own_wait(), "an element of fifo_queue");
    EXPECT_GE(wait_of(syscall(SYS_gettid))->lasting, Seconds{0});
  }
  EXPECT_EQ(own_wait(), "");
}

TEST(Waiting, TheNewestCountsAndTheOneBeforeComesBack) {
  const Waiting outer("the end of the threads");
  {
    const Waiting inner("a reply of", "/job:ps/task:0");
    EXPECT_EQ(own_wait(), "a reply of /job:ps/task:0");
  }
  EXPECT_EQ(own_wait(), "the end of the threads");
}

TEST(Waiting, ALongNameIsCut) {
  const Waiting waiting("x", std::string(1000, 'n'));
  EXPECT_EQ(own_wait(), "x " + std::string(Waiting::kMostName, 'n'));
}

TEST(Waiting, AThreadThatHasEndedWaitsForNothing) {
  int64_t thread = 0;
  std::thread([&] {
    thread = syscall(SYS_gettid);
    const Waiting waiting("a moment");
  }).join();
  EXPECT_FALSE(wait_of(thread));
}

TEST(Waiting, IsReadWhileItChanges) {
  std::atomic<bool> is_over{false};
  std::atomic<int64_t> thread{0};
  std::thread changes([&] {
    thread = syscall(SYS_gettid);
    while (!is_over) {
      const Waiting one("one", "1111111111111111");
      const Waiting two("two", "2222222222222222");
    }
  });
  while (thread == 0) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) {
    const auto wait = wait_of(thread);
    const std::string what = wait ? wait->what : "";
    EXPECT_THAT(what, ::testing::AnyOf("", "one 1111111111111111", "two 2222222222222222"));
  }
  is_over = true;
  changes.join();
}

}  // namespace
}  // namespace longhaul
