#include "longhaul/binding/devices/device_error.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"

namespace longhaul {

void throw_device_error(const std::string& what, const c10::Error& error) {
  throw InternalError(
      fmt::format("{} cannot be read: {}. A device that has failed stays so for this process: start the program again, "
                  "which continues from its newest checkpoint",
                  what, error.what_without_backtrace()));
}

}  // namespace longhaul
