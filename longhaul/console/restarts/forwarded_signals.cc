#include "longhaul/console/restarts/forwarded_signals.h"

#include <algorithm>

namespace longhaul::console {
namespace {

constexpr int kStopSignals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1};

}  // namespace

bool is_stop_signal(int number) {
  return std::find(std::begin(kStopSignals), std::end(kStopSignals), number) != std::end(kStopSignals);
}

std::optional<ReceivedSignal> ForwardedSignals::wait(std::optional<Seconds> timeout) const {
  const std::optional<siginfo_t> received = signals_.wait(timeout);
  if (!received) return std::nullopt;
  return ReceivedSignal{.number = received->si_signo, .is_of_terminal = received->si_code == SI_KERNEL};
}

}  // namespace longhaul::console
