#include "longhaul/console/restarts/restart_policy.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>

namespace longhaul::console {
namespace {

constexpr int kWrongUsage = 2, kCannotExecute = 126, kNotFound = 127;

}  // namespace

std::string ProgramEnd::to_string() const {
  if (!was_started) return "it cannot be started";
  return signal == 0 ? fmt::format("exit status {}", status) : fmt::format("signal {} ({})", signal, strsignal(signal));
}

RestartPolicy::Decision RestartPolicy::after(const ProgramEnd& end, Seconds lasted, bool was_stopped) {
  if (was_stopped) return {std::nullopt, "a stop signal was received"};
  if (end.signal == 0 && end.was_started) {
    if (end.status == 0) return {std::nullopt, "it is done"};
    if (end.status == kWrongUsage) return {std::nullopt, "exit status 2 is wrong usage, which another start repeats"};
    if (end.status == kCannotExecute || end.status == kNotFound) {
      return {std::nullopt, "a shell has this status for a command that it cannot start"};
    }
  }
  if (lasted >= options_.steady) {
    left_ = options_.max_restarts;
    pause_ = Seconds{0};
  }
  if (left_ == 0) {
    return {std::nullopt,
            fmt::format("{} restart{} in a row {} used up (--max-restarts)", options_.max_restarts,
                        options_.max_restarts == 1 ? "" : "s", options_.max_restarts == 1 ? "is" : "are")};
  }
  --left_;
  pause_ = pause_ == Seconds{0} ? options_.first_pause : std::min(2 * pause_, options_.longest_pause);
  return {pause_, ""};
}

}  // namespace longhaul::console
