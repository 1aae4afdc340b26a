#include "longhaul/resume_check/waited_signals.h"

#include <fmt/format.h>
#include <string.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cmath>

namespace longhaul {
namespace {

bool is_ignored(int signal) {
  struct sigaction action{};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

timespec to_timespec(Seconds time) {
  const double seconds = std::clamp(time.count(), 0.0, 3600.0);
  const double whole = std::floor(seconds);
  return {static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
}

}  // namespace

InterruptedError::InterruptedError(int signal)
    : CancelledError(fmt::format("interrupted by signal {} ({})", signal, strsignal(signal))), signal_(signal) {}

WaitedSignals::WaitedSignals() {
  sigemptyset(&waited_);
  sigaddset(&waited_, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!is_ignored(signal)) sigaddset(&waited_, signal);
  }
  struct sigaction by_default{};
  by_default.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &by_default, &child_before_);  // ignored, children would leave no exit status
  pthread_sigmask(SIG_BLOCK, &waited_, &before_);
  prctl(PR_GET_CHILD_SUBREAPER, &subreaper_before_);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

WaitedSignals::~WaitedSignals() {
  prctl(PR_SET_CHILD_SUBREAPER, subreaper_before_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  sigaction(SIGCHLD, &child_before_, nullptr);
}

void WaitedSignals::wait(Seconds timeout) const {
  const timespec time = to_timespec(timeout);
  const int signal = sigtimedwait(&waited_, nullptr, &time);  // wait: for a child's end; files have no notification
  if (signal > 0 && signal != SIGCHLD) throw InterruptedError(signal);
}

}  // namespace longhaul
