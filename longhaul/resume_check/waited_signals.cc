#include "longhaul/resume_check/waited_signals.h"

#include <fmt/format.h>
#include <string.h>

namespace longhaul {

InterruptedError::InterruptedError(int signal)
    : CancelledError(fmt::format("interrupted by signal {} ({})", signal, strsignal(signal))), signal_(signal) {}

void WaitedSignals::wait(Seconds timeout) const {
  if (const auto received = signals_.wait(timeout)) throw InterruptedError(received->si_signo);
}

}  // namespace longhaul
