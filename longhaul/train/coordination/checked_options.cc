#include "longhaul/train/coordination/checked_options.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"

namespace longhaul {

void check_not_negative(std::string_view option, double value) {
  if (value >= 0) return;
  throw InvalidArgumentError(fmt::format("{} is {:g}: it must be 0 or more", option, value));
}

}  // namespace longhaul
