#include "longhaul/stacks/stack_signal.h"

#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <utility>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/clock.h"

namespace longhaul {
namespace {

constexpr size_t kMostFrames = 64;

// A question to one thread. Never freed, since a handler may come late:
//
//   idle --ask--> asked --handler--> writing --handler--> written --answer taken--> idle
//                   `--time is over--> idle          `-- time is over: the question is left to its handler
struct Question {
  enum State : int { kIdle, kAsked, kWriting, kWritten };
  std::atomic<int> state{kIdle};
  std::atomic<int64_t> thread{0};
  bool is_past_handler = false;  // these three are the handler's while it writes
  size_t count = 0;
  std::array<uintptr_t, kMostFrames> addresses{};
  sem_t written{};

  Question() { sem_init(&written, /*pshared=*/0, 0); }
};

std::atomic<Question*> question{nullptr};
Mutex& asking() {
  static auto& mutex = *new Mutex;
  return mutex;
}

// The frames up to the interrupted function are the handler's; its address is that of an instruction, and those of its
// callers are where they go on, one behind the call.
_Unwind_Reason_Code take_frame(_Unwind_Context* context, void* to) {
  auto& answer = *static_cast<Question*>(to);
  int is_interrupted = 0;
  const uintptr_t address = _Unwind_GetIPInfo(context, &is_interrupted);
  if (address == 0) return _URC_END_OF_STACK;
  if (is_interrupted != 0 && !std::exchange(answer.is_past_handler, true)) answer.count = 0;
  if (answer.count == kMostFrames) return _URC_END_OF_STACK;
  answer.addresses[answer.count++] = is_interrupted != 0 ? address : address - 1;
  return _URC_NO_REASON;
}

void handle(int, siginfo_t*, void*) {
  const int error = errno;
  Question* const mine = question.load(std::memory_order_acquire);
  int asked = Question::kAsked;
  if (mine != nullptr && mine->thread.load() == syscall(SYS_gettid) &&
      mine->state.compare_exchange_strong(asked, Question::kWriting)) {
    mine->is_past_handler = false;
    mine->count = 0;
    _Unwind_Backtrace(take_frame, mine);
    mine->state.store(Question::kWritten, std::memory_order_release);
    sem_post(&mine->written);
  }
  errno = error;
}

bool is_ours(int signal) {
  struct sigaction action{};
  return sigaction(signal, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) != 0 &&
         action.sa_sigaction == handle;
}

bool install(int signal) {
  struct sigaction before{};
  if (sigaction(signal, nullptr, &before) != 0) return false;
  if ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) return false;
  struct sigaction ours{};
  ours.sa_sigaction = handle;
  // SA_NODEFER: a thread that has just answered, and is about to leave the handler, does not block the next question.
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  return sigaction(signal, &ours, nullptr) == 0;
}

// The first call of the unwinder may need memory and locks, which a handler must not.
void prepare_unwinder() {
  static const bool is_prepared = [] {
    Question unused;
    return _Unwind_Backtrace(take_frame, &unused), true;
  }();
  (void)is_prepared;
}

// "0000000200000000" in the line "SigBlk:"; false if it cannot be read.
bool blocks(int64_t thread, int signal) {
  const AboveStdio above;
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigBlk:")) continue;
    return (std::strtoull(line.c_str() + 7, nullptr, 16) >> (signal - 1)) % 2 == 1;
  }
  return false;
}

// Some code blocks all signals for a moment, such as pthread_create().
bool keeps_blocking(int64_t thread, int signal) {
  constexpr Seconds kMoment{0.005};
  const Seconds end = Clock::real().now() + kMoment;
  do {
    if (!blocks(thread, signal)) return false;
  } while (Clock::real().now() < end);  // wait: polls: the kernel does not tell when a thread no longer blocks a signal
  return true;
}

timespec time_in(Seconds limit) {
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC, &at);
  const auto nanoseconds = static_cast<int64_t>(std::clamp(limit.count(), 0.0, 3600.0) * 1e9) + at.tv_nsec;
  at.tv_sec += nanoseconds / 1'000'000'000;
  at.tv_nsec = nanoseconds % 1'000'000'000;
  return at;
}

bool is_posted(sem_t& written, Seconds limit) {
  const timespec until = time_in(limit);
  // wait: for the handler, in a thread that may be in the kernel, for the caller's limit
  while (sem_clockwait(&written, CLOCK_MONOTONIC, &until) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

// False: the time is over, and the question was taken back, or is left to a handler that does not end.
bool is_answered(Question& asked, Seconds limit) {
  const auto is_written = [&] { return asked.state.load(std::memory_order_acquire) == Question::kWritten; };
  if (is_posted(asked.written, limit)) return is_written();
  int state = Question::kAsked;
  if (asked.state.compare_exchange_strong(state, Question::kIdle)) return false;
  if (is_posted(asked.written, limit)) return is_written();
  question.store(nullptr);  // left to it
  return false;
}

}  // namespace

int stack_signal() {
  static std::atomic<int> chosen{0};
  if (chosen != 0 && is_ours(chosen)) return chosen;
  for (int signal = SIGRTMAX - 2; signal > SIGRTMIN + 2; --signal) {
    if (!is_ours(signal) && !install(signal)) continue;
    chosen = signal;
    return signal;
  }
  return 0;
}

RawStack stack_of_thread(int64_t thread, Seconds limit) {
  using Answer = RawStack::Answer;
  MutexLock lock(asking());
  const int signal = stack_signal();
  if (signal == 0) return {.answer = Answer::kNoSignal};
  if (keeps_blocking(thread, signal)) return {.answer = Answer::kBlocked};
  prepare_unwinder();
  if (question.load() == nullptr) question.store(new Question);
  Question& asked = *question.load();
  asked.thread = thread;
  asked.state.store(Question::kAsked, std::memory_order_release);
  if (syscall(SYS_tgkill, getpid(), thread, signal) != 0) {
    asked.state = Question::kIdle;
    return {.answer = Answer::kGone};
  }
  if (!is_answered(asked, limit)) return {.answer = Answer::kNoAnswer};
  RawStack stack{.answer = Answer::kHere,
                 .addresses = {asked.addresses.begin(), asked.addresses.begin() + static_cast<ptrdiff_t>(asked.count)}};
  asked.state = Question::kIdle;
  return stack;
}

}  // namespace longhaul
