#include "longhaul/runtime/devices/host_copies.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <map>

#include "longhaul/base/error.h"
#include "longhaul/runtime/devices/device_error.h"
#include "longhaul/runtime/devices/pinned_memory.h"

namespace longhaul {
namespace {

// Libtorch keeps pinned memory for good. A snapshot of a whole model is no such thing.
constexpr size_t kMostPinnedBytes = size_t{64} << 20;

template <typename Copy>
at::Tensor with_our_errors(const at::Tensor& tensor, const Copy& copy) {
  try {
    return copy();
  } catch (const c10::OutOfMemoryError& error) {
    throw ResourceExhaustedError(
        fmt::format("a copy of a tensor on {}: {}", tensor.device().str(), error.what_without_backtrace()));
  } catch (const c10::Error& error) {
    throw_device_error("a tensor on " + tensor.device().str() + " cannot be read", error);
  }
}

}  // namespace

at::Tensor copy_to_host(const at::Tensor& tensor) {
  return with_our_errors(tensor, [&] { return tensor.cpu(); });
}

// What a device does is done in order, so whoever waits for its last copy has them all.
void copy_all_to_host(const std::vector<at::Tensor*>& tensors) {
  std::map<std::string, at::Tensor*> largest;  // of each device: it is waited for
  for (at::Tensor* tensor : tensors) {
    if (!tensor->defined() || tensor->is_cpu()) continue;
    at::Tensor*& known = largest[tensor->device().str()];
    if (known == nullptr || known->nbytes() < tensor->nbytes()) known = tensor;
  }
  size_t pinned = 0;
  std::vector<at::Tensor*> waited_for;
  for (at::Tensor* tensor : tensors) {
    if (!tensor->defined() || tensor->is_cpu()) continue;
    const bool is_largest = largest.at(tensor->device().str()) == tensor;
    if (is_largest || pinned + tensor->nbytes() > kMostPinnedBytes) {
      waited_for.push_back(tensor);
      continue;
    }
    pinned += tensor->nbytes();
    *tensor = with_our_errors(*tensor, [&] { return host_memory_for(*tensor).copy_(*tensor, /*non_blocking=*/true); });
  }
  for (at::Tensor* tensor : waited_for) *tensor = copy_to_host(*tensor);
}

}  // namespace longhaul
