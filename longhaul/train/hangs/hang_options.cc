#include "longhaul/train/hangs/hang_options.h"

#include <fmt/format.h>

#include <cmath>

#include "longhaul/base/error.h"

namespace longhaul {

void check_hang(const HangOptions& options, const char* option) {
  const auto check = [option](const char* field, double value) {
    if (std::isfinite(value) && value >= 0) return;
    throw InvalidArgumentError(fmt::format("{}.{} must be 0 or above, not {:g}", option, field, value));
  };
  check("after", options.after.count());
  check("kill_after", options.kill_after.count());
  check("median_steps", static_cast<double>(options.median_steps));
}

}  // namespace longhaul
