#include "longhaul/train/signals/crash_handler.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "longhaul/base/alternate_stack.h"
#include "longhaul/base/mutex.h"
#include "longhaul/train/signals/used_signals.h"

namespace longhaul {
namespace {

constexpr size_t kMost = 16;
constexpr int kEmpty = 0;  // a place has the descriptor and one: zero before anything is set

// What the handler may touch: nothing but lock-free atomics, and what was written before it was installed.
std::array<std::atomic<int>, kMost> places{};
std::atomic<int> writers{0};
std::atomic<pid_t> owner{0};
std::array<struct sigaction, NSIG> before{};
std::array<std::atomic<bool>, NSIG> is_lived_through{};  // the program has a handler that it goes on after
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free);

// In one write, so that it is whole.
void write_line(int fd, int signal) {
  char line[] = "signal 00\n";
  line[7] = static_cast<char>('0' + signal / 10);
  line[8] = static_cast<char>('0' + signal % 10);
  [[maybe_unused]] const ssize_t written = write(fd, line, sizeof(line) - 1);
}

void write_survival(int fd) {
  constexpr char kLine[] = "survived\n";
  [[maybe_unused]] const ssize_t written = write(fd, kLine, sizeof(kLine) - 1);
}

template <typename Write>
void for_each_descriptor(const Write& write) {
  ++writers;
  for (const std::atomic<int>& place : places) {
    if (const int fd = place.load(); fd != kEmpty) write(fd - 1);
  }
  --writers;
}

// Of memory that has failed another run may get another piece.
bool is_failed_memory(const siginfo_t& info) {
  return info.si_signo == SIGBUS && (info.si_code == BUS_MCEERR_AR || info.si_code == BUS_MCEERR_AO);
}

bool is_sent(const siginfo_t& info) {
  return info.si_code <= 0;  // by kill(2), tgkill(2), sigqueue(3); else it is the kernel's
}

bool is_own_doing(const siginfo_t& info) {
  const pid_t self = getpid();
  if (self != owner.load() || is_failed_memory(info)) return false;
  if (is_lived_through[static_cast<size_t>(info.si_signo)]) return false;
  return !is_sent(info) || info.si_pid == self;
}

// The signal is blocked until the handler returns. A fault comes again then, from the same place; what was sent must be
// sent again. The first process of a container would outlive that.
void die_by(int signal, const siginfo_t& info) {
  std::signal(signal, SIG_DFL);
  if (!is_sent(info) && !is_failed_memory(info)) return;
  if (getpid() == 1) _exit(128 + signal);
  raise(signal);
}

void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction& action = before[static_cast<size_t>(signal)];
  const bool takes_info = (action.sa_flags & SA_SIGINFO) != 0;
  if (!takes_info && action.sa_handler == SIG_DFL) return die_by(signal, *info);
  if (action.sa_flags & SA_RESETHAND) std::signal(signal, SIG_DFL);
  if (takes_info) {
    action.sa_sigaction(signal, info, context);
  } else {
    action.sa_handler(signal);
  }
}

bool is_default(int signal) {
  struct sigaction now{};
  return sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL;
}

// abort() ends the process also if a handler returns.
bool is_deadly_after(int signal) {
  return signal == SIGABRT || is_default(signal);
}

void handle(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const bool is_crash = is_own_doing(*info);
  if (is_crash) for_each_descriptor([signal](int fd) { write_line(fd, signal); });
  errno = saved_errno;
  pass_on(signal, info, context);
  if (is_crash && !is_deadly_after(signal) && !is_lived_through[static_cast<size_t>(signal)].exchange(true)) {
    for_each_descriptor(write_survival);
  }
  errno = saved_errno;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == handle;
}

// What the one of before had blocked meanwhile is blocked for it now.
struct sigaction action_over(const struct sigaction& other) {
  struct sigaction action{};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | (other.sa_flags & (SA_RESTART | SA_NODEFER));
  action.sa_mask = other.sa_mask;
  return action;
}

// Installed once, it stays under what was put on top of it: installed again over that it would be called by itself.
// Where there is the default action now, nothing is on top of it any more.
class Handlers {
 public:
  void install() {
    for (const int signal : signals_for({SignalUse::kCrash})) {
      struct sigaction& other = before[static_cast<size_t>(signal)];
      if (is_installed(signal) && !is_default(signal)) continue;
      if (sigaction(signal, nullptr, &other) != 0) continue;
      if ((other.sa_flags & SA_SIGINFO) == 0 && other.sa_handler == SIG_IGN) continue;
      const struct sigaction action = action_over(other);
      installed_[static_cast<size_t>(signal)] = sigaction(signal, &action, nullptr) == 0;
    }
  }
  void uninstall() {
    for (const int signal : signals_for({SignalUse::kCrash})) {
      struct sigaction now{};
      if (!is_installed(signal) || sigaction(signal, nullptr, &now) != 0 || !is_ours(now)) continue;
      sigaction(signal, &before[static_cast<size_t>(signal)], nullptr);
      installed_[static_cast<size_t>(signal)] = false;
    }
  }

 private:
  bool is_installed(int signal) const { return installed_[static_cast<size_t>(signal)]; }

  std::array<bool, NSIG> installed_{};
};

struct Registry {
  Mutex mutex;
  int count GUARDED_BY(mutex) = 0;
  Handlers handlers GUARDED_BY(mutex);
};

Registry& registry() {
  static auto* const registry = new Registry;
  return *registry;
}

std::atomic<int>* free_place() {
  for (std::atomic<int>& place : places) {
    if (place.load() == kEmpty) return &place;
  }
  return nullptr;
}

}  // namespace

std::atomic<int>* add_crash_descriptor(int fd) {
  Registry& all = registry();
  MutexLock lock(all.mutex);
  if (owner.exchange(getpid()) != getpid()) {  // a forked child has those of its parent, which it leaves alone
    for (std::atomic<int>& place : places) place = kEmpty;
    all.count = 0;
  }
  std::atomic<int>* const place = free_place();
  if (place == nullptr) return nullptr;
  *place = fd + 1;
  use_alternate_stack();
  if (all.count++ == 0) all.handlers.install();
  return place;
}

void remove_crash_descriptor(std::atomic<int>* place, int fd) {
  Registry& all = registry();
  MutexLock lock(all.mutex);
  if (place->load() != fd + 1) return;
  *place = kEmpty;
  if (--all.count == 0) all.handlers.uninstall();
  // wait: polls: a handler of a signal writes a line, and may not notify
  while (getpid() == owner.load() && writers.load() > 0) std::this_thread::yield();
}

}  // namespace longhaul
