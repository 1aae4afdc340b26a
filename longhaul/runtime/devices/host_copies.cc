#include "longhaul/runtime/devices/host_copies.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <map>
#include <optional>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
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

// While it exists, the thread uses another stream of the device, behind all that its own one has to do now.
class BesideOwnStream {
 public:
  explicit BesideOwnStream(c10::Device device) {
    const c10::impl::VirtualGuardImpl of_type(device.type());
    try {
      c10::Event now(device.type());
      now.record(of_type.getStream(device));
      const c10::Stream other = of_type.getStreamFromGlobalPool(device, /*isHighPriority=*/false);
      now.block(other);
      before_ = of_type.exchangeStream(other);
    } catch (const c10::Error& error) {
      log_debug("{} has no streams, so steps wait for the copies of a snapshot: {}", device.str(),
                error.what_without_backtrace());
    }
  }
  ~BesideOwnStream() {
    if (before_) c10::impl::VirtualGuardImpl(before_->device_type()).exchangeStream(*before_);
  }
  BesideOwnStream(const BesideOwnStream&) = delete;

 private:
  std::optional<c10::Stream> before_;
};

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

void copy_snapshot_to_host(const std::vector<at::Tensor*>& tensors) {
  std::map<std::string, BesideOwnStream> streams;  // of each device
  for (const at::Tensor* tensor : tensors) {
    if (tensor->defined() && !tensor->is_cpu()) streams.try_emplace(tensor->device().str(), tensor->device());
  }
  copy_all_to_host(tensors);
}

}  // namespace longhaul
