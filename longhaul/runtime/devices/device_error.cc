#include "longhaul/runtime/devices/device_error.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "longhaul/base/error.h"

namespace longhaul {

void throw_device_error(const std::string& what, const c10::Error& error) {
  throw InternalError(
      fmt::format("{}: {}. A device that has failed stays so for this process: start the program again, which "
                  "continues from its newest checkpoint",
                  what, error.what_without_backtrace()));
}

bool has_failed(c10::Device device) {
  try {
    at::zeros({1}, at::TensorOptions(device)).cpu();
    return false;
  } catch (const c10::OutOfMemoryError&) {
    return false;
  } catch (const c10::Error&) {
    return true;
  }
}

}  // namespace longhaul
