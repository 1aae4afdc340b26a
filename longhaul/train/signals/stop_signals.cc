#include "longhaul/train/signals/stop_signals.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <memory>
#include <thread>
#include <utility>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/log.h"
#include "longhaul/train/coordination/open_training.h"

namespace longhaul {
namespace {

constexpr int64_t kSameSignal = 100'000'000;  // nanoseconds

// What the handler may touch: nothing but lock-free atomics and what POSIX calls async-signal-safe.
std::atomic<pid_t> process{0};  // whose signals are handled: a forked child inherits the handlers, and the pipe
std::atomic<int> write_end{-1};
std::atomic<int> pipe_writers{0};  // handlers that may be about to write to it
std::atomic<int> first_signal{0};
std::atomic<int64_t> first_at{0};  // of those but SIGHUP; nanoseconds, monotonic; 0: none came
std::array<std::atomic<bool>, NSIG> asks_for_stop{};
std::atomic<pid_t> taken_by{0};               // the process with a StopSignals; 0: none
std::atomic<const char*> in_use_by{nullptr};  // its SignalHandling::user
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);

constexpr unsigned char kEnd = 0;  // no signal has this number

int64_t nanoseconds_now() {
  struct timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

bool is_second(int64_t now) {
  int64_t first = 0;
  return !first_at.compare_exchange_strong(first, now) && now - first > kSameSignal;
}

void tell(int signal) {
  const auto byte = static_cast<unsigned char>(signal);
  ++pipe_writers;
  if (const int fd = write_end.load(); fd >= 0) {
    [[maybe_unused]] const ssize_t written = write(fd, &byte, 1);
  }
  --pipe_writers;
}

// By the signal's default action, which comes when the handler returns, since the signal is blocked until then. The
// first process of a container has none: it ends with the status that a shell would report.
void end_by(int signal) {
  if (getpid() == 1) _exit(128 + signal);
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void handle(int signal) {
  const int saved_errno = errno;
  const bool is_stop = asks_for_stop[static_cast<size_t>(signal)];
  if (getpid() != process.load()) {
    if (is_stop) end_by(signal);
  } else if (!is_stop) {
    tell(signal);
  } else if (signal != SIGHUP && is_second(nanoseconds_now())) {
    end_by(signal);
  } else {
    int none = 0;
    first_signal.compare_exchange_strong(none, signal);
    tell(signal);
  }
  errno = saved_errno;
}

// The handler of a signal; nullptr: there is no such signal.
using Handler = void (*)(int);
Handler handler_of(int signal) {
  struct sigaction now{};
  return sigaction(signal, nullptr, &now) == 0 ? now.sa_handler : nullptr;
}

// UCX, which some builds of libtorch load, catches SIGHUP as it is loaded (UCX_DEBUG_SIGNO) and so hides that nohup(1)
// had it ignored. Its own function gives back what was there before.
void take_back_from_ucx(int signal) {
  auto* const give_back = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "ucs_debug_disable_signal"));
  Dl_info handlers{}, ucx{};
  if (give_back != nullptr && dladdr(reinterpret_cast<void*>(handler_of(signal)), &handlers) != 0 &&
      dladdr(reinterpret_cast<void*>(give_back), &ucx) != 0 && handlers.dli_fbase == ucx.dli_fbase) {
    give_back(signal);
  }
}

// As nohup(1) leaves it: the program is to outlive its terminal.
bool is_left_alone(int signal) {
  if (signal != SIGHUP) return false;
  take_back_from_ucx(signal);
  return handler_of(signal) == SIG_IGN;
}

// A stop without a coordinator's error, which lasts as long as the function.
SignalHandling stop_of(const Coordinator& coord, std::vector<int> signals) {
  return {.stop_signals = std::move(signals), .on_signal = [coord, reason = std::make_shared<int>(0)](int signal) {
            coord.request_stop_while(reason);  // before the log, which may block
            if (!OpenTraining::is_only_elsewhere(coord)) {
              return log_info("{}", signal_notice(signal, "training stops after the current step"));
            }
            log_warning("{}", signal_notice(signal,
                                            "it stops the Coordinator of this StopSignals, which the training "
                                            "under way does not use: make it with the training's coord()"));
          }};
}

// A forked child may have a StopSignals beside the inherited one, which is its parent's. Returns the parent; 0: none.
pid_t take_signals(const char* user) {
  pid_t other = 0;
  const pid_t own = getpid();
  while (other != own && !taken_by.compare_exchange_strong(other, own)) {
  }
  if (other != own) {
    in_use_by = user;
    return other;
  }
  const char* const other_user = in_use_by.load();
  const bool is_same_kind = other_user == nullptr || std::string_view(other_user) == user;
  throw FailedPreconditionError(
      fmt::format("{} {} already handles this process's signals, so a {} cannot; only one may exist at a time{}",
                  is_same_kind ? "another" : "a", is_same_kind ? user : other_user, user,
                  is_same_kind ? "" : ". Delete the StopSignals: the Preemption handles its signals too"));
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string signal_notice(int signal, std::string_view consequence) {
  const bool counts = signal != SIGHUP;
  return fmt::format("{}: {}{}", signal_name(signal), consequence,
                     counts ? "; another signal ends the process at once" : "");
}

bool is_ended_by_sigterm() {
  sigset_t blocked{};  // in a program whose own thread waits for signals
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  return taken_by.load() == 0 && handler_of(SIGTERM) == SIG_DFL && sigismember(&blocked, SIGTERM) == 0;
}

StopSignals::StopSignals(const Coordinator& coord, std::vector<int> signals)
    : StopSignals(stop_of(coord, std::move(signals))) {}

StopSignals::StopSignals(std::function<void(int signal)> on_signal, std::vector<int> signals)
    : StopSignals(SignalHandling{.stop_signals = std::move(signals), .on_signal = std::move(on_signal)}) {}

StopSignals::StopSignals(SignalHandling handling) : handling_(std::move(handling)), process_(getpid()) {
  parent_ = take_signals(handling_.user);
  try {
    before_.reserve(handling_.stop_signals.size() + handling_.other_signals.size());
    open_pipe();
    watcher_ = NamedThread("lh-signals", [this] { watch(); });
  } catch (...) {
    close_pipe();
    taken_by = parent_;
    throw;
  }
  write_end = -1;
  if (process.exchange(getpid()) != getpid()) pipe_writers = 0;  // what a forked child has counted is its parent's
  first_signal = 0;
  first_at = 0;
  write_end = pipe_[1];
  install();
}

StopSignals::~StopSignals() {
  if (getpid() != process_) {
    leave_to_parent();
    return;
  }
  restore();
  end_watch();
  watcher_.join();
  close_pipe();
  if (parent_ != 0) process = parent_;  // the handlers are again those that this forked child has inherited
  taken_by = parent_;
}

// In a forked child: the thread and its pipe are the parent's. The child may have handlers of its own.
void StopSignals::leave_to_parent() {
  watcher_.leave_to_parent();
  if (taken_by == getpid()) return close_ends();
  restore();
  close_pipe();
  taken_by = parent_;
}

// The end that the handler writes to does not block: a full pipe has signals enough.
void StopSignals::open_pipe() {
  const AboveStdio above;
  if (pipe2(pipe_.data(), O_CLOEXEC) != 0) throw_errno(errno, "make a pipe for signals");
  fcntl(pipe_[1], F_SETFL, O_NONBLOCK);
}

// A handler that still runs on another thread would write into the next file that gets the pipe's number. In a forked
// child there is none: its other threads are the parent's.
void StopSignals::close_pipe() {
  write_end = -1;
  // wait: polls: a handler of a signal writes a byte, and may not notify
  while (getpid() == process.load() && pipe_writers.load() > 0) std::this_thread::yield();
  close_ends();
}

void StopSignals::close_ends() {
  for (const int fd : pipe_) {
    if (fd >= 0) close(fd);
  }
}

void StopSignals::install() {
  const auto catch_signal = [this](int signal, bool is_stop) {
    if (is_left_alone(signal)) return;
    struct sigaction action{};
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    struct sigaction before{};
    if (signal > 0 && signal < NSIG) asks_for_stop[static_cast<size_t>(signal)] = is_stop;
    if (sigaction(signal, &action, &before) == 0) {
      before_.emplace_back(signal, before);
    } else {
      log_error("signal {} cannot be caught", signal);
    }
  };
  for (int signal : handling_.stop_signals) catch_signal(signal, true);
  for (int signal : handling_.other_signals) catch_signal(signal, false);
}

// Backwards: a signal may be in the lists twice.
void StopSignals::restore() {
  for (; !before_.empty(); before_.pop_back()) sigaction(before_.back().first, &before_.back().second, nullptr);
}

// After the signals that came. A pipe that is full of them has room when the thread has read some.
void StopSignals::end_watch() const {
  struct pollfd writing{pipe_[1], POLLOUT, 0};
  while (write(pipe_[1], &kEnd, 1) != 1 && (errno == EAGAIN || errno == EINTR)) {
    poll(&writing, 1, -1);  // wait: watch() ends it
  }
}

void StopSignals::watch() const {
  while (true) {
    unsigned char byte = kEnd;
    const ssize_t count = read(pipe_[0], &byte, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count != 1 || byte == kEnd) return;
    if (handling_.on_signal) handling_.on_signal(byte);
    log_debug("signal {} arrived", static_cast<int>(byte));
  }
}

int StopSignals::signal_received() const {
  return first_signal.load();
}

}  // namespace longhaul
