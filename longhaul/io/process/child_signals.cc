#include "longhaul/io/process/child_signals.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

namespace longhaul {
namespace {

bool is_ignored(int signal) {
  struct sigaction action{};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

timespec to_timespec(Seconds time) {
  const double seconds = time.count() > 0 ? std::min(time.count(), 3600.0) : 0;  // of a NaN none
  const double whole = std::floor(seconds);
  return {static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
}

}  // namespace

ChildSignals::ChildSignals(std::initializer_list<int> signals) {
  sigemptyset(&waited_);
  sigaddset(&waited_, SIGCHLD);
  for (const int signal : signals) {
    if (!is_ignored(signal)) sigaddset(&waited_, signal);
  }
  struct sigaction by_default{};
  by_default.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &by_default, &child_before_);  // ignored, children would leave no exit status
  pthread_sigmask(SIG_BLOCK, &waited_, &before_);
  prctl(PR_GET_CHILD_SUBREAPER, &subreaper_before_);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

ChildSignals::~ChildSignals() {
  prctl(PR_SET_CHILD_SUBREAPER, subreaper_before_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  sigaction(SIGCHLD, &child_before_, nullptr);
}

std::optional<siginfo_t> ChildSignals::wait(std::optional<Seconds> timeout) const {
  const timespec time = to_timespec(timeout.value_or(Seconds{0}));
  siginfo_t info{};
  // wait: for a signal, a child's end, or the caller's time
  const int signal = timeout ? sigtimedwait(&waited_, &info, &time) : sigwaitinfo(&waited_, &info);
  if (signal <= 0 || signal == SIGCHLD) return std::nullopt;
  return info;
}

int exec_error(int pipe) {
  int error = 0;
  while (true) {
    const ssize_t count = ::read(pipe, &error, sizeof error);
    if (count >= 0) return count == sizeof error ? error : 0;
    if (errno != EINTR) return errno;
  }
}

}  // namespace longhaul
