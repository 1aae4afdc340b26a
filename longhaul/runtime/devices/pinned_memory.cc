#include "longhaul/runtime/devices/pinned_memory.h"

#include <ATen/ops/empty.h>

#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

// Buffers may be made at the very end of the program, so this stays.
struct KnownMemory {
  std::mutex mutex;
  std::map<c10::DeviceType, PinnedMemory> registered;  // guarded by the mutex
  std::set<c10::DeviceType> unpinned;                  // the same: kinds of which the log has said so

  static KnownMemory& get() {
    static auto* known = new KnownMemory;
    return *known;
  }
};

PinnedMemory registered_for(c10::DeviceType type) {
  KnownMemory& known = KnownMemory::get();
  const std::lock_guard<std::mutex> lock(known.mutex);
  const auto found = known.registered.find(type);
  return found == known.registered.end() ? nullptr : found->second;
}

void tell_unpinned(const at::Tensor& tensor, const c10::Error& error) {
  KnownMemory& known = KnownMemory::get();
  const std::lock_guard<std::mutex> lock(known.mutex);
  if (!known.unpinned.insert(tensor.device().type()).second) return;
  log_info("no pinned memory for copies from {}, so whoever copies waits for it: {}", tensor.device().str(),
           error.what_without_backtrace());
}

}  // namespace

at::Tensor host_memory_for(const at::Tensor& tensor) {
  const at::TensorOptions options(tensor.scalar_type());
  if (tensor.is_cpu()) return at::empty(tensor.sizes(), options);
  try {
    if (const PinnedMemory pinned = registered_for(tensor.device().type()))
      return pinned(tensor.sizes(), tensor.scalar_type());
    return at::empty(tensor.sizes(), options.pinned_memory(true));
  } catch (const c10::Error& error) {
    tell_unpinned(tensor, error);
    return at::empty(tensor.sizes(), options);
  }
}

void register_pinned_memory(c10::DeviceType type, PinnedMemory pinned) {
  KnownMemory& known = KnownMemory::get();
  const std::lock_guard<std::mutex> lock(known.mutex);
  if (pinned) {
    known.registered[type] = std::move(pinned);
  } else {
    known.registered.erase(type);
  }
}

}  // namespace longhaul
