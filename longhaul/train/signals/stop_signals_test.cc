#include "longhaul/train/signals/stop_signals.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>

#include "longhaul/base/log.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/no_new_threads_fixture.h"
#include "longhaul/train/coordination/open_training.h"
#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(StopSignals, ASignalRequestsTheStop) {  // unlike SV-66
  const Coordinator coord;
  const StopSignals signals(coord);
  EXPECT_EQ(signals.signal_received(), 0);
  raise(SIGTERM);
  EXPECT_TRUE(coord.wait_for_stop(Seconds{60}));
  EXPECT_EQ(signals.signal_received(), SIGTERM);
  EXPECT_NO_THROW(coord.raise_requested_exception());
}

// A sink may block: each message must find what it tells of done.
TEST(StopSignals, TheStopDoesNotWaitForTheLog) {
  const Coordinator coord;
  std::atomic<bool> is_too_early{false};
  const LogSink before = set_log_sink([&](LogLevel, const std::string&) {
    if (!coord.should_stop()) is_too_early = true;
  });
  {
    const StopSignals signals(coord);
    raise(SIGTERM);
    EXPECT_TRUE(coord.wait_for_stop(Seconds{60}));
  }
  set_log_sink(before);
  EXPECT_FALSE(is_too_early);
}

TEST(StopSignals, TheStopOutlastsAClearing) {
  const Coordinator coord;
  const StopSignals signals(coord);
  raise(SIGTERM);
  EXPECT_TRUE(coord.wait_for_stop(Seconds{60}));
  coord.clear_stop();
  EXPECT_TRUE(coord.should_stop());
}

TEST(StopSignals, TheStopEndsWithThem) {
  const Coordinator coord;
  {
    const StopSignals signals(coord);
    raise(SIGTERM);
    EXPECT_TRUE(coord.wait_for_stop(Seconds{60}));
  }
  EXPECT_TRUE(coord.should_stop());
  coord.clear_stop();
  EXPECT_FALSE(coord.should_stop());
}

bool is_caught(int signal) {
  struct sigaction now{};
  sigaction(signal, nullptr, &now);
  return now.sa_handler != SIG_DFL;
}

TEST(StopSignals, MoreSignalsThanThePipeHoldsDoNotKeepItFromItsEnd) {
  constexpr int kMoreThanItHolds = 70'000;
  std::atomic<bool> is_released{false};
  std::atomic<int> calls{0};
  auto signals = std::make_unique<StopSignals>(SignalHandling{.other_signals = {SIGUSR2}, .on_signal = [&](int) {
                                                                ++calls;
                                                                while (!is_released) std::this_thread::yield();
                                                              }});
  for (int i = 0; i < kMoreThanItHolds; ++i) raise(SIGUSR2);
  std::thread releaser([&] {
    while (is_caught(SIGUSR2)) std::this_thread::yield();  // then the end has begun
    is_released = true;
  });
  signals.reset();
  releaser.join();
  EXPECT_GT(calls, 1000);
}

TEST(StopSignals, TheFirstSignalIsTheOneThatCounts) {
  std::atomic<int> calls{0};
  const StopSignals signals([&](int) { ++calls; });
  raise(SIGINT);
  raise(SIGTERM);
  while (calls < 2) std::this_thread::yield();
  EXPECT_EQ(signals.signal_received(), SIGINT);
}

TEST(StopSignals, TheHandlersOfBeforeComeBack) {
  struct sigaction before{}, after{};
  sigaction(SIGINT, nullptr, &before);
  {
    const StopSignals signals(Coordinator{});
  }
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST(StopSignals, AClosedTerminalRequestsTheStopAsOftenAsItIsTold) {
  std::signal(SIGHUP, SIG_DFL);  // the tests may run under nohup
  const Coordinator coord;
  const StopSignals signals(coord);
  raise(SIGHUP);
  EXPECT_TRUE(coord.wait_for_stop(Seconds{60}));
  std::this_thread::sleep_for(std::chrono::milliseconds(150));  // until it is not the first one, sent twice
  raise(SIGHUP);
  EXPECT_EQ(signals.signal_received(), SIGHUP);
  raise(SIGTERM);  // the session manager's, after the terminal's: it ends nothing that stops already
}

TEST(StopSignals, AClosedTerminalThatWasToBeIgnoredIsIgnored) {
  std::signal(SIGHUP, SIG_IGN);
  {
    const Coordinator coord;
    const StopSignals signals(coord);
    raise(SIGHUP);
    EXPECT_EQ(signals.signal_received(), 0);
  }
  raise(SIGHUP);
  std::signal(SIGHUP, SIG_DFL);
}

TEST(StopSignals, SigtermEndsAProcessThatNeitherCatchesNorIgnoresNorBlocksIt) {
  EXPECT_TRUE(is_ended_by_sigterm());
  {
    const StopSignals signals(Coordinator{});
    EXPECT_FALSE(is_ended_by_sigterm());
  }
  EXPECT_TRUE(is_ended_by_sigterm());
  std::signal(SIGTERM, SIG_IGN);
  EXPECT_FALSE(is_ended_by_sigterm());
  std::signal(SIGTERM, SIG_DFL);
  sigset_t blocked{}, before{};
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  EXPECT_FALSE(is_ended_by_sigterm());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(StopSignals, ThereIsOneAtATime) {
  const StopSignals signals(Coordinator{});
  EXPECT_THROW(StopSignals(Coordinator{}), FailedPreconditionError);
}

TEST(StopSignals, TheRefusalOfASecondOneNamesWhatTheProgramMade) {
  const auto refusal_of_preemption = [] { return error_of([] { Preemption second; }); };
  {
    const Preemption first;
    EXPECT_THAT(refusal_of_preemption(), AllOf(HasSubstr("another Preemption already handles this process's signals"),
                                               Not(HasSubstr("StopSignals"))));
    EXPECT_THAT(error_of([] { StopSignals second(Coordinator{}); }),
                AllOf(HasSubstr("a Preemption already handles this process's signals, so a StopSignals cannot"),
                      HasSubstr("Delete the StopSignals: the Preemption handles its signals too")));
  }
  const StopSignals first(Coordinator{});
  EXPECT_THAT(refusal_of_preemption(), HasSubstr("a StopSignals already handles this process's signals"));
}

TEST(StopSignals, OtherSignalsAreToldAsOftenAsTheyComeAndEndNothing) {
  std::atomic<int> calls{0};
  const StopSignals signals({.stop_signals = {SIGTERM}, .other_signals = {SIGUSR2}, .on_signal = [&](int signal) {
                               if (signal == SIGUSR2) ++calls;
                             }});
  for (int i = 1; i <= 3; ++i) {
    raise(SIGUSR2);
    while (calls < i) std::this_thread::yield();
  }
  EXPECT_EQ(signals.signal_received(), 0);
}

TEST(StopSignals, ASignalThatComesTwiceAtOnceIsOne) {
  const Coordinator coord;
  const StopSignals signals(coord);
  raise(SIGTERM);
  raise(SIGTERM);
  EXPECT_TRUE(coord.wait_for_stop(Seconds{60}));
}

class SecondSignalDeathTest : public ::testing::TestWithParam<std::pair<int, int>> {};

TEST_P(SecondSignalDeathTest, Kills) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto [first, second] = GetParam();
  EXPECT_EXIT(
      {
        const Coordinator coord;
        const StopSignals signals(coord);
        raise(first);
        coord.wait_for_stop(Seconds{60});
        std::this_thread::sleep_for(std::chrono::milliseconds(150));  // until it is not the first one, sent twice
        raise(second);
      },
      ::testing::KilledBySignal(second), "");
}

// Of a child that does this, and ends with 0 unless it does so itself.
int exit_status_of(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(StopSignals, ASignalToAForkedChildEndsTheChildAlone) {
#ifdef _GLIBCXX_TSAN
  LONGHAUL_NEEDS("forked_children", false, "ThreadSanitizer delivers no signals to a forked child");
#endif
  const Coordinator coord;
  const StopSignals signals(coord);
  EXPECT_EQ(exit_status_of([] { raise(SIGTERM); }), 128 + SIGTERM);
  EXPECT_EQ(signals.signal_received(), 0);
  raise(SIGTERM);
  EXPECT_TRUE(coord.wait_for_stop(Seconds{60})) << "the parent's are handled as before";
}

TEST(StopSignals, OtherSignalsDoNothingInAForkedChild) {
  std::atomic<int> told{0};
  const StopSignals signals(SignalHandling{.other_signals = {SIGUSR2}, .on_signal = [&](int) { ++told; }});
  EXPECT_EQ(exit_status_of([] { raise(SIGUSR2); }), 0);
  raise(SIGUSR2);
  while (told == 0) std::this_thread::yield();
  EXPECT_EQ(told, 1);
}

#ifndef _GLIBCXX_TSAN  // under which no child of a process with threads can start one
TEST(StopSignals, AForkedChildMayHaveOneOfItsOwn) {
  const Coordinator coord;
  const StopSignals signals(coord);
  const auto have_one = [] {
    const Coordinator own;
    const StopSignals signals_of_child(own);
    raise(SIGTERM);
    if (!own.wait_for_stop(Seconds{60})) _exit(1);
    if (error_of<FailedPreconditionError>([&] { StopSignals second(own); }).empty()) _exit(2);
  };
  EXPECT_EQ(exit_status_of(have_one), 0);
  EXPECT_EQ(exit_status_of([&] {
              have_one();
              raise(SIGTERM);
            }),
            128 + SIGTERM)
      << "without one of its own, a child is ended as before";
  EXPECT_EQ(signals.signal_received(), 0);
  raise(SIGTERM);
  EXPECT_TRUE(coord.wait_for_stop(Seconds{60}));
}

TEST(StopSignals, TheEndOfTheParentsInAForkedChildLeavesTheChildsOwnAlone) {
  const Coordinator coord;
  auto signals = std::make_unique<StopSignals>(coord);
  const auto end_parents = [&] {
    const Coordinator own;
    const StopSignals signals_of_child(own);
    signals.reset();
    raise(SIGTERM);
    if (!own.wait_for_stop(Seconds{60})) _exit(1);
  };
  EXPECT_EQ(exit_status_of(end_parents), 0);
  raise(SIGTERM);
  EXPECT_TRUE(coord.wait_for_stop(Seconds{60}));
}
#endif

TEST(StopSignals, TheEndInAForkedChildLeavesTheParentsAlone) {
  const Coordinator coord;
  auto signals = std::make_unique<StopSignals>(coord);
  EXPECT_EQ(exit_status_of([&] { signals.reset(); }), 0);
  raise(SIGTERM);
  EXPECT_TRUE(coord.wait_for_stop(Seconds{60}));
}

TEST(StopSignals, AHandlerThatComesLateWritesIntoNoOtherFile) {
  struct sigaction late{};
  {
    const StopSignals signals(SignalHandling{.stop_signals = {}, .other_signals = {SIGUSR2}});
    sigaction(SIGUSR2, nullptr, &late);
  }
  std::array<std::array<int, 2>, 2> pipes{};  // they get the numbers of the one that is closed
  for (auto& ends : pipes) ASSERT_EQ(pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC), 0);
  late.sa_handler(SIGUSR2);
  for (const auto& ends : pipes) {
    char byte = 0;
    EXPECT_LT(read(ends[0], &byte, 1), 0) << "a signal's number was written here";
    for (const int fd : ends) close(fd);
  }
}

TEST(StopSignals, OneWhoseThreadCannotBeStartedLeavesTheSignalsToTheNext) {
  {
    const NoNewThreads none;
    EXPECT_ANY_THROW(StopSignals(Coordinator{}));
  }
  EXPECT_FALSE(is_caught(SIGTERM));
  const Coordinator coord;
  const StopSignals signals(coord);
  raise(SIGTERM);
  EXPECT_TRUE(coord.wait_for_stop(Seconds{60}));
}

// The next child is the first process of a namespace of its own. In a chroot the superuser alone may have one.
bool enter_new_namespace() {
  return unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0 || unshare(CLONE_NEWPID) == 0;
}

bool namespaces_are_allowed() {
  return exit_status_of([] { _exit(enter_new_namespace() ? 0 : 1); }) == 0;
}

TEST(StopSignalsDeathTest, ASecondSignalEndsAlsoTheFirstProcessOfAContainer) {
  LONGHAUL_NEEDS("namespaces", namespaces_are_allowed(), "a process may not make namespaces of its own here");
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        enter_new_namespace();
        _exit(exit_status_of([] {
          const StopSignals signals(Coordinator{});
          raise(SIGTERM);
          std::this_thread::sleep_for(std::chrono::milliseconds(150));
          raise(SIGTERM);
        }));
      },
      ::testing::ExitedWithCode(128 + SIGTERM), "");
}

INSTANTIATE_TEST_SUITE_P(, SecondSignalDeathTest,
                         ::testing::Values(std::pair(SIGINT, SIGINT), std::pair(SIGINT, SIGTERM)));

TEST(StopSignals, ThoseOfAnotherCoordinatorThanTheTrainingsSaySo) {
  const LogRecorder log;
  const Coordinator coord, of_training;
  const OpenTraining training(of_training);
  const StopSignals signals(coord);
  raise(SIGTERM);
  ASSERT_TRUE(coord.wait_for_stop(Seconds{60}));
  const Seconds deadline = Clock::real().now() + Seconds{60};
  while (log.text(LogLevel::kWarning).empty() && Clock::real().now() < deadline) std::this_thread::yield();
  EXPECT_THAT(log.text(LogLevel::kWarning),
              HasSubstr("which the training under way does not use: make it with the training's coord()"));
  EXPECT_FALSE(of_training.should_stop());
}

}  // namespace
}  // namespace longhaul
