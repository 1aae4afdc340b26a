#include "longhaul/console/restarts/forwarded_signals.h"

namespace longhaul::console {

std::optional<ReceivedSignal> ForwardedSignals::wait(std::optional<Seconds> timeout) const {
  const std::optional<siginfo_t> received = signals_.wait(timeout);
  if (!received) return std::nullopt;
  return ReceivedSignal{.number = received->si_signo, .is_of_terminal = received->si_code == SI_KERNEL};
}

}  // namespace longhaul::console
