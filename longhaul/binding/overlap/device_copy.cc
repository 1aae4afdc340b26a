#include "longhaul/binding/overlap/device_copy.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/record_function.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/binding/devices/device_streams.h"
#include "longhaul/runtime/devices/device_error.h"

namespace longhaul {
namespace {

// For operators of ours amid those of the program, in whatever state its thread is.
struct Aside {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowAutograd below_autograd;
  const at::DisableRecordFunctionGuard unrecorded;
};

bool is_plain(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && !tensor.is_conj() && !tensor.is_neg() && tensor.numel() > 0;
}

// A number on the tensor's device, on its current stream; undefined: the device cannot make it.
at::Tensor sum_of(const at::Tensor& tensor) {
  try {
    const Aside aside;
    const at::Tensor real = tensor.is_complex() ? at::view_as_real(tensor) : tensor;
    return at::sum(real, at::isFloatingType(real.scalar_type()) ? at::kDouble : at::kLong).to(at::kDouble);
  } catch (const c10::Error& error) {
    log_debug("no sum on {}: {}", tensor.device().str(), error.what_without_backtrace());
    return {};
  }
}

// Their bits; it waits for the device.
std::vector<uint64_t> bits_of(const std::vector<at::Tensor>& numbers) {
  if (numbers.empty()) return {};
  const Aside aside;
  const at::Tensor on_host = at::stack(numbers).cpu();
  std::vector<uint64_t> bits(numbers.size());
  std::memcpy(bits.data(), on_host.data_ptr(), on_host.nbytes());
  return bits;
}

const std::byte* begin_of(const at::Tensor& tensor) {
  return static_cast<const std::byte*>(static_cast<const void*>(tensor.storage().data()));
}

void synchronize(const c10::Stream& stream) {
  try {
    stream.synchronize();
  } catch (const c10::Error& error) {
    throw_device_error("what is on " + stream.device().str() + " cannot be read", error);
  }
}

}  // namespace

bool DeviceCopy::takes(const at::Tensor& source, const at::Tensor& destination) {
  return !source.is_cpu() && is_plain(source) && destination.is_cpu() && is_plain(destination) &&
         source.scalar_type() == destination.scalar_type() && has_streams(source.device());
}

size_t DeviceCopy::device_of(const at::Tensor& tensor) {
  const auto found = std::find_if(devices_.begin(), devices_.end(),
                                  [&](const OnDevice& on) { return on.training.device() == tensor.device(); });
  if (found != devices_.end()) return static_cast<size_t>(found - devices_.begin());
  const c10::impl::VirtualGuardImpl guard(tensor.device().type());
  devices_.push_back({.training = guard.getStream(tensor.device()),
                      .copies = guard.getStreamFromGlobalPool(tensor.device(), /*isHighPriority=*/false)});
  return devices_.size() - 1;
}

void DeviceCopy::add(const std::string& name, const at::Tensor& source, const at::Tensor& destination) {
  const MutexLock lock(mutex_);
  Part part{.name = name,
            .source = source,
            .destination = destination,
            .storage = source.storage(),
            .device = device_of(source)};
  if (is_proof_) {
    const Aside aside;
    destination.copy_(source, /*non_blocking=*/true);
    part.is_started = true;
  }
  parts_.push_back(std::move(part));
}

void DeviceCopy::close() {
  const MutexLock lock(mutex_);
  for (OnDevice& on : devices_) {
    on.moment.emplace(on.training.device_type());
    on.moment->record(on.training);
    if (is_proof_) synchronize(on.training);
  }
  const size_t looked_at = is_proof_ ? parts_.size() : std::min(kInTurn, parts_.size());
  for (size_t i = 0; i < looked_at; ++i) {
    Part& part = parts_[(turn_ * kInTurn + i) % parts_.size()];
    part.sum = sum_of(part.source);
    if (!part.sum.defined()) spoil(part.name + " cannot be looked at on its device");
  }
  for (size_t i = 0; i < parts_.size(); ++i) {
    const std::byte* const begin = begin_of(parts_[i].source);
    const std::byte* const end = begin + parts_[i].storage.nbytes();
    by_address_.push_back({begin, end, end, i});
  }
  std::sort(by_address_.begin(), by_address_.end(),
            [](const Place& a, const Place& b) { return std::less<>()(a.begin, b.begin); });
  for (size_t i = 1; i < by_address_.size(); ++i)
    by_address_[i].furthest = std::max(by_address_[i].furthest, by_address_[i - 1].furthest);
}

void DeviceCopy::spoil(const std::string& why) {
  if (why_.empty()) why_ = why;
}

// On the stream of copies, once all that was enqueued before the moment is over.
void DeviceCopy::start(Part& part) {
  if (std::exchange(part.is_started, true)) return;
  OnDevice& on = devices_[part.device];
  try {
    const Aside aside;
    const c10::StreamGuard guard(on.copies);
    on.moment->block(on.copies);
    part.destination.copy_(part.source, /*non_blocking=*/true);
    part.copied.emplace(on.copies.device_type());
    part.copied->record(on.copies);
  } catch (const c10::Error& error) {
    spoil(fmt::format("{} could not be copied ({})", part.name, error.what_without_backtrace()));
  }
}

bool DeviceCopy::start_next() {
  const MutexLock lock(mutex_);
  while (next_ < parts_.size()) {
    Part& part = parts_[next_++];
    if (part.is_started) continue;
    start(part);
    return true;
  }
  return false;
}

bool DeviceCopy::all_started() {
  const MutexLock lock(mutex_);
  return std::all_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.is_started; });
}

template <typename Do>
void DeviceCopy::for_each_part(const void* begin, const void* end, const Do& what) const {
  const auto* const first = static_cast<const std::byte*>(begin);
  auto behind = std::lower_bound(by_address_.begin(), by_address_.end(), static_cast<const std::byte*>(end),
                                 [](const Place& place, const std::byte* at) { return place.begin < at; });
  for (; behind != by_address_.begin() && std::prev(behind)->furthest > first; --behind) {
    if (std::prev(behind)->end > first) what(std::prev(behind)->part);
  }
}

bool DeviceCopy::covers(const void* begin, const void* end) const {
  bool found = false;
  for_each_part(begin, end, [&](size_t) { found = true; });
  return found;
}

void DeviceCopy::look_again(Part& part, const c10::Stream& stream) {
  if (!part.sum.defined() || part.later.defined()) return;
  const c10::StreamGuard guard(stream);
  part.later = sum_of(part.source);
}

void DeviceCopy::before_write(const void* begin, const void* end) {
  for_each_part(begin, end, [this](size_t i) {
    const MutexLock lock(mutex_);
    was_written_ = true;
    Part& part = parts_[i];
    const c10::Device device = part.source.device();
    const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
    start(part);
    look_again(part, stream);
    if (!part.copied || part.waits == stream) return;
    part.copied->block(stream);
    part.waits = stream;
  });
}

void DeviceCopy::finish() {
  std::vector<c10::Stream> copies;
  {
    const MutexLock lock(mutex_);
    for (Part& part : parts_) start(part);
    for (const OnDevice& on : devices_) copies.push_back(on.copies);
  }
  try {
    for (const c10::Stream& stream : copies) stream.synchronize();
    const MutexLock lock(mutex_);
    for (Part& part : parts_) look_again(part, devices_[part.device].training);
  } catch (const c10::Error& error) {
    const MutexLock lock(mutex_);
    spoil(fmt::format("a device has failed ({})", error.what_without_backtrace()));
  }
}

bool DeviceCopy::was_written() {
  const MutexLock lock(mutex_);
  return was_written_;
}

// Which of the parts are no longer what they were, by these sums.
std::vector<size_t> DeviceCopy::changed(const std::vector<size_t>& parts, const std::vector<at::Tensor>& later) {
  std::vector<size_t> found;
  for (size_t device = 0; device < devices_.size(); ++device) {
    std::vector<size_t> here;
    std::vector<at::Tensor> numbers;
    for (size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts_[parts[i]];
      if (part.device != device || !part.sum.defined()) continue;
      if (!later[i].defined()) {
        found.push_back(parts[i]);  // nobody knows
        continue;
      }
      here.push_back(parts[i]);
      numbers.push_back(part.sum);
      numbers.push_back(later[i]);
    }
    const c10::StreamGuard guard(devices_[device].training);
    const std::vector<uint64_t> bits = bits_of(numbers);
    for (size_t i = 0; i < here.size(); ++i) {
      if (bits[2 * i] != bits[2 * i + 1]) found.push_back(here[i]);
    }
  }
  return found;
}

bool DeviceCopy::was_changed() {
  const MutexLock lock(mutex_);
  std::vector<size_t> parts;
  std::vector<at::Tensor> now;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].later.defined()) continue;
    const c10::StreamGuard guard(devices_[parts_[i].device].training);
    parts.push_back(i);
    now.push_back(sum_of(parts_[i].source));
  }
  return !changed(parts, now).empty();
}

std::optional<std::string> DeviceCopy::problem() {
  const MutexLock lock(mutex_);
  if (!why_.empty()) return why_;
  std::vector<size_t> parts;
  std::vector<at::Tensor> later;
  for (size_t i = 0; i < parts_.size(); ++i) {
    parts.push_back(i);
    later.push_back(parts_[i].later);
  }
  try {
    const std::vector<size_t> found = changed(parts, later);
    if (found.empty()) return std::nullopt;
    return fmt::format("{} was changed in a way that libtorch does not announce", parts_[found.front()].name);
  } catch (const c10::Error& error) {
    return fmt::format("a device has failed ({})", error.what_without_backtrace());
  }
}

}  // namespace longhaul
