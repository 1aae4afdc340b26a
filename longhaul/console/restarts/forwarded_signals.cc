#include "longhaul/console/restarts/forwarded_signals.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cmath>

namespace longhaul::console {
namespace {

constexpr int kStopSignals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1};

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

bool is_stop_signal(int number) {
  return std::find(std::begin(kStopSignals), std::end(kStopSignals), number) != std::end(kStopSignals);
}

ForwardedSignals::ForwardedSignals() {
  sigemptyset(&waited_);
  sigaddset(&waited_, SIGCHLD);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    if (!is_ignored(signal)) sigaddset(&waited_, signal);
  }
  struct sigaction by_default{};
  by_default.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &by_default, &child_before_);  // ignored, children would leave no exit status
  pthread_sigmask(SIG_BLOCK, &waited_, &before_);
  prctl(PR_GET_CHILD_SUBREAPER, &subreaper_before_);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

ForwardedSignals::~ForwardedSignals() {
  prctl(PR_SET_CHILD_SUBREAPER, subreaper_before_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  sigaction(SIGCHLD, &child_before_, nullptr);
}

std::optional<ReceivedSignal> ForwardedSignals::wait(std::optional<Seconds> timeout) const {
  const timespec time = to_timespec(timeout.value_or(Seconds{0}));
  siginfo_t info{};
  // wait: for a signal or a child's end, as long as the program runs
  const int signal = timeout ? sigtimedwait(&waited_, &info, &time) : sigwaitinfo(&waited_, &info);
  if (signal <= 0 || signal == SIGCHLD) return std::nullopt;
  return ReceivedSignal{.number = signal, .is_of_terminal = info.si_code == SI_KERNEL};
}

}  // namespace longhaul::console
