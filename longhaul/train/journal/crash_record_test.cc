#include "longhaul/train/journal/crash_record.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/signals/used_signals.h"

namespace longhaul {
namespace {

constexpr int64_t kRun = 7;

// What happens in a process of its own that has a record.
class CrashRecordTest : public ::testing::Test {
 protected:
  // The status as waitpid(2) gives it; a body that returns ends the process with 0 and the record left behind.
  int run(const std::function<void()>& body, const std::function<void()>& before = [] {}) {
    const pid_t child = fork();
    if (child == 0) {
      before();
      static const auto* const record = new CrashRecord(path(), kRun);
      body();
      _exit(record == nullptr ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }
  std::optional<int> recorded(int64_t run = kRun) const { return read_crash_record(FileSystem::real(), path(), run); }
  std::string path() const { return directory_.file("crash"); }
  bool exists() const { return FileSystem::real().exists(path()); }

  const testing::TemporaryDirectory directory_;
};

void fault() {
  *static_cast<volatile char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) = 1;
}

void set_handler(int signal, void (*handler)(int), int flags = 0) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

struct sigaction action_of(int signal) {
  struct sigaction action{};
  sigaction(signal, nullptr, &action);
  return action;
}

TEST_F(CrashRecordTest, AFaultIsWrittenDownAndEndsTheProcess) {
  EXPECT_NE(run(fault), 0);
  EXPECT_EQ(recorded(), SIGSEGV);
}

TEST_F(CrashRecordTest, EachOfTheSignalsIs) {
  for (const int signal : signals_for({SignalUse::kCrash})) {
    EXPECT_NE(run([&] { raise(signal); }), 0);
    EXPECT_EQ(recorded(), signal);
  }
}

void touch_behind_the_end_of_a_file() {
  const testing::TemporaryDirectory directory;
  const int fd = ::open(directory.file("empty").c_str(), O_RDWR | O_CREAT, 0600);
  *static_cast<volatile char*>(mmap(nullptr, 4096, PROT_WRITE, MAP_SHARED, fd, 0)) = 1;
}

#if defined(__x86_64__)  // others divide by zero without a signal
__attribute__((no_sanitize("undefined"))) void divide_by_zero() {
  volatile int two = 2, zero = 0;
  zero = two / zero;
}

// How a program comes by each of them, by itself.
const std::map<int, std::function<void()>> kFaults{{SIGSEGV, fault},
                                                   {SIGBUS, touch_behind_the_end_of_a_file},
                                                   {SIGFPE, divide_by_zero},
                                                   {SIGILL, [] { asm volatile("ud2"); }},
                                                   {SIGABRT, [] { std::abort(); }}};

TEST_F(CrashRecordTest, EachKindOfFaultIs) {
  for (const int signal : signals_for({SignalUse::kCrash})) {
    ASSERT_TRUE(kFaults.contains(signal)) << strsignal(signal);
    const int status = run(kFaults.at(signal));
    EXPECT_EQ(recorded(), signal) << strsignal(signal);
#ifndef LONGHAUL_SANITIZED  // which exit instead
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << strsignal(signal) << ": " << status;
#else
    EXPECT_NE(status, 0);
#endif
  }
}
#endif

TEST_F(CrashRecordTest, AnExceptionThatNobodyCatchesIs) {
  const int status = run([] { std::thread([] { throw std::runtime_error("a bug"); }).join(); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
  EXPECT_EQ(recorded(), SIGABRT);
}

TEST_F(CrashRecordTest, AFaultInAnyThreadIs) {
  run([] { std::thread(fault).join(); });
  EXPECT_EQ(recorded(), SIGSEGV);
}

#ifndef LONGHAUL_SANITIZED
volatile int most_depth = 1 << 30;

int overflow(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  return depth == most_depth ? 0 : overflow(depth + 1) + frame[0];
}

TEST_F(CrashRecordTest, AStackThatOverflowsIs) {
  const int status = run([] { overflow(0); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << status;
  EXPECT_EQ(recorded(), SIGSEGV);
}
#endif

// Sends the signal to the process once it has its record. A sanitizer's own handler is not in the way.
int status_when_sent(int signal, const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(signal, SIG_DFL);
    static const auto* const record = new CrashRecord(path, kRun);
    kill(getpid(), SIGSTOP);
    while (record != nullptr) pause();
  }
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  kill(child, signal);
  kill(child, SIGCONT);
  waitpid(child, &status, 0);
  return status;
}

TEST_F(CrashRecordTest, AKillFromOutsideIsNot) {
  std::vector<int> signals = signals_for({SignalUse::kCrash});
  signals.insert(signals.end(), {SIGKILL, SIGTERM});
  for (const int signal : signals) {
    const int status = status_when_sent(signal, path());
    EXPECT_NE(status, 0);
    EXPECT_EQ(recorded(), std::nullopt) << signal;
    EXPECT_TRUE(exists());
  }
}

TEST_F(CrashRecordTest, TheDefaultActionOfAKillFromOutsideComes) {
  const int status = status_when_sent(SIGFPE, path());
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGFPE) << status;
}

TEST_F(CrashRecordTest, TheHandlerOfBeforeIsCalled) {
  const int status = run(fault, [] { set_handler(SIGSEGV, [](int) { _exit(42); }); });
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_EQ(recorded(), SIGSEGV);
}

TEST_F(CrashRecordTest, TheHandlerOfBeforeGetsWhatIsKnownOfTheFault) {
  static char* page = nullptr;
  const int status = run([] { *const_cast<volatile char*>(page) = 1; },
                         [] {
                           page =
                               static_cast<char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
                           struct sigaction action{};
                           action.sa_flags = SA_SIGINFO;
                           action.sa_sigaction = [](int, siginfo_t* info, void* context) {
                             _exit(info->si_addr == page && context != nullptr ? 42 : 1);
                           };
                           sigaction(SIGSEGV, &action, nullptr);
                         });
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST_F(CrashRecordTest, AHandlerThatRaisesTheSignalAgainHasLetItDie) {
  const auto dies = [](int signal) {
    std::signal(signal, SIG_DFL);
    raise(signal);
  };
  const int status = run(fault, [&] { set_handler(SIGSEGV, dies); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << status;
  EXPECT_EQ(recorded(), SIGSEGV);
}

TEST_F(CrashRecordTest, AHandlerThatIsForOnceIsCalledOnce) {
  const int status = run(fault, [] { set_handler(SIGSEGV, [](int) {}, SA_RESETHAND); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << status;
  EXPECT_EQ(recorded(), SIGSEGV);
}

TEST_F(CrashRecordTest, AProgramThatLivesThroughASignalHasNotDiedOfIt) {
  EXPECT_EQ(run(
                [] {
                  for (int i = 0; i < 1000; ++i) raise(SIGFPE);
                },
                [] { set_handler(SIGFPE, [](int) {}); }),
            0);
  EXPECT_EQ(recorded(), std::nullopt);
  EXPECT_LT(read_file(FileSystem::real(), path()).size(), 100);
}

TEST_F(CrashRecordTest, AnAbortIsOneAlsoIfAHandlerReturns) {
  const int status = run([] { std::abort(); }, [] { set_handler(SIGABRT, [](int) {}); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
  EXPECT_EQ(recorded(), SIGABRT);
}

TEST_F(CrashRecordTest, AForkedChildWritesNothing) {
  EXPECT_EQ(run([] {
              const pid_t child = fork();
              if (child == 0) std::abort();
              int status = 0;
              waitpid(child, &status, 0);
              if (!WIFSIGNALED(status)) _exit(1);
            }),
            0);
  EXPECT_EQ(recorded(), std::nullopt);
}

TEST_F(CrashRecordTest, AForkedChildWithARecordOfItsOwnLeavesThatOfItsParentAlone) {
  const std::string other = directory_.file("other");
  EXPECT_EQ(run([&] {
              const pid_t child = fork();
              if (child == 0) {
                const CrashRecord own(other, kRun);
                std::abort();
              }
              waitpid(child, nullptr, 0);
            }),
            0);
  EXPECT_EQ(recorded(), std::nullopt);
  EXPECT_EQ(read_crash_record(FileSystem::real(), other, kRun), SIGABRT);
}

TEST_F(CrashRecordTest, EachTrainingOfAProcessHasItsOwn) {
  const std::string other = directory_.file("other");
  run([&] {
    const CrashRecord second(other, 3);
    std::abort();
  });
  EXPECT_EQ(recorded(), SIGABRT);
  EXPECT_EQ(read_crash_record(FileSystem::real(), other, 3), SIGABRT);
}

TEST_F(CrashRecordTest, IsOfItsRunAlone) {
  run([] { std::abort(); });
  EXPECT_EQ(recorded(kRun + 1), std::nullopt);
  EXPECT_EQ(recorded(kRun / 2), std::nullopt);
}

TEST_F(CrashRecordTest, WithTheLastOneTheHandlersOfBeforeAreBack) {
  const struct sigaction before = action_of(SIGSEGV);
  {
    const CrashRecord first(path(), kRun);
    {
      const CrashRecord second(directory_.file("other"), kRun);
    }
    EXPECT_NE(action_of(SIGSEGV).sa_sigaction, before.sa_sigaction);
  }
  EXPECT_EQ(action_of(SIGSEGV).sa_sigaction, before.sa_sigaction);
  EXPECT_FALSE(exists());
}

// It stays, and calls ours, which is not installed over it by the next one: they would call each other for ever.
TEST_F(CrashRecordTest, AHandlerThatIsPutOnTopStaysThere) {
  static struct sigaction under{};
  const std::string other = directory_.file("other");
  const int status = run([&] {
    auto first = std::make_unique<CrashRecord>(other, kRun);
    under = action_of(SIGILL);
    struct sigaction action{};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int signal, siginfo_t* info, void* context) { under.sa_sigaction(signal, info, context); };
    sigaction(SIGILL, &action, nullptr);
    first.reset();
    first = std::make_unique<CrashRecord>(other, kRun);
    if (action_of(SIGILL).sa_sigaction != action.sa_sigaction) _exit(1);
    raise(SIGILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGILL) << status;
  EXPECT_EQ(read_crash_record(FileSystem::real(), other, kRun), SIGILL);
}

TEST_F(CrashRecordTest, WhereTheOneOnTopWentAwayTheNextRecordIsAsTheFirst) {
  const pid_t child = fork();
  if (child == 0) {
    auto record = std::make_unique<CrashRecord>(path(), kRun);
    set_handler(SIGILL, [](int) {});
    record.reset();
    std::signal(SIGILL, SIG_DFL);
    record = std::make_unique<CrashRecord>(path(), kRun);
    raise(SIGILL);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGILL) << status;
  EXPECT_EQ(recorded(), SIGILL);
}

TEST_F(CrashRecordTest, ASignalThatIsIgnoredStaysSo) {
  EXPECT_EQ(run([] { raise(SIGFPE); }, [] { std::signal(SIGFPE, SIG_IGN); }), 0);
  EXPECT_EQ(recorded(), std::nullopt);
}

TEST_F(CrashRecordTest, TheFileOfAnotherIsNotRemoved) {
  {
    const CrashRecord record(path(), kRun);
    write_file_atomically(FileSystem::real(), path(), "another chief's");
  }
  EXPECT_EQ(read_file(FileSystem::real(), path()), "another chief's");
}

TEST_F(CrashRecordTest, ThereAreAsManyAsThereAreAndNoMore) {
  std::vector<std::unique_ptr<CrashRecord>> records;
  for (int i = 0; i < 16; ++i) {
    records.push_back(std::make_unique<CrashRecord>(directory_.file(std::to_string(i)), kRun));
  }
  EXPECT_THROW(CrashRecord(path(), kRun), ResourceExhaustedError);
  records.pop_back();
  EXPECT_NO_THROW(CrashRecord(path(), kRun));
}

TEST_F(CrashRecordTest, WhateverTheFileHoldsIsRead) {
  for (const std::string& text :
       {std::string(), std::string("signal 11\n"), std::string("longhaul crash record 1 run 7"),
        std::string("longhaul crash record 1 run 7\nsignal"), std::string("longhaul crash record 1 run 7\nsignal -4\n"),
        std::string("longhaul crash record 1 run 7\nsignal 99999999999999\n"),
        std::string("longhaul crash record 1 run 7\n\0\xff\n", 33), std::string(100000, 's')}) {
    write_file_atomically(FileSystem::real(), path(), text);
    EXPECT_EQ(recorded(), std::nullopt) << text.substr(0, 100);
  }
}

}  // namespace
}  // namespace longhaul
