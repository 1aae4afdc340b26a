#include "longhaul/runtime/state/variable_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "longhaul/runtime/state/direct_snapshots.h"

namespace longhaul {
namespace {

size_t bytes_of(const at::Tensor& tensor) {
  return static_cast<size_t>(tensor.numel()) * tensor.element_size();
}

// Whether nobody but the caller's handle holds the tensor's bytes, and there are no others in its storage.
bool is_alone(const at::Tensor& tensor) {
  return VariableSlot::exclusive(tensor) && tensor.is_contiguous() && tensor.storage_offset() == 0 &&
         tensor.storage().nbytes() == bytes_of(tensor);
}

// A copy of a tensor that libtorch has no dtype for.
Tensor copy_of(const Tensor& tensor) {
  Tensor copy(tensor.dtype(), tensor.shape());
  if (tensor.dtype() == kString) {
    const auto from = tensor.flat<std::string>();
    std::copy(from.begin(), from.end(), copy.mutable_flat<std::string>().begin());
  } else if (tensor.size_bytes() > 0) {
    std::memcpy(copy.mutable_data(), tensor.data(), tensor.size_bytes());
  }
  return copy;
}

}  // namespace

VariableSlot::~VariableSlot() {
  memory_.replaced(value_.tensor, {});
}

void VariableSlot::set_program_value(const std::shared_ptr<HostFunction>& access, bool initialized) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (program_value_) return;
  program_value_ = access;
  program_value_assigned_ = initialized;
}

bool VariableSlot::initialized() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return initialized_locked();
}

void VariableSlot::check_initialized() const {
  if (!initialized_locked()) {
    throw FailedPreconditionError(fmt::format(
        "Attempting to use uninitialized value {}; run its initializer or restore a checkpoint first", name_));
  }
}

void VariableSlot::check_updatable() const {
  check_initialized();
  if (!program_value_) return;
  throw InvalidArgumentError(name_ + " belongs to the program, which changes it itself; only Assign may write it");
}

Value VariableSlot::read() const {
  std::unique_lock<std::mutex> lock(mutex_);
  check_initialized();
  if (!program_value_) return value_;
  lock.unlock();
  return Value((*program_value_)({}).at(0));
}

Value VariableSlot::assign(Value value) {
  if (std::unique_lock<std::mutex> lock(mutex_); program_value_) {
    lock.unlock();
    return assign_to_program(std::move(value));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (value.is_host()) {
    value.host = copy_of(value.host);
  } else if (can_copy_in_place(value.tensor)) {
    value_.tensor.copy_(value.tensor);
    return value_;
  } else if (!can_take(value.tensor)) {
    value.tensor = memory_.make(value.tensor.sizes(), value.tensor.scalar_type()).copy_(value.tensor);
  }
  memory_.replaced(value_.tensor, value.tensor);
  value_ = std::move(value);
  return value_;
}

bool VariableSlot::can_take(const at::Tensor& tensor) const {
  return is_alone(tensor) && memory_.accepts(tensor);
}

// Small ones are taken or copied anew, whichever it is.
bool VariableSlot::can_copy_in_place(const at::Tensor& tensor) const {
  const at::Tensor& mine = value_.tensor;
  return mine.defined() && bytes_of(mine) >= VariableMemory::kSmallest && exclusive(mine) && !can_take(tensor) &&
         mine.sizes() == tensor.sizes() && mine.scalar_type() == tensor.scalar_type();
}

std::pair<const void*, size_t> VariableSlot::held_buffer() const {
  std::lock_guard<std::mutex> lock(mutex_);
  const at::Tensor& tensor = value_.tensor;
  if (!tensor.defined() || exclusive(tensor) || bytes_of(tensor) < VariableMemory::kSmallest) return {nullptr, 0};
  return {tensor.data_ptr(), bytes_of(tensor)};
}

Value VariableSlot::assign_to_program(Value value) {
  (*program_value_)({value.to_host()});
  std::lock_guard<std::mutex> lock(mutex_);
  program_value_assigned_ = true;
  return value;
}

VariableStore::VariableStore(std::optional<uint64_t> snapshot_memory)
    : memory_(snapshot_memory.value_or(UINT64_MAX)),
      snapshot_limit_(std::make_shared<SnapshotLimit>(memory_, snapshot_memory)) {
  if (!snapshot_memory) return;
  memory_.set_on_release([limit = std::weak_ptr(snapshot_limit_)] {
    if (const std::shared_ptr<SnapshotLimit> still = limit.lock()) still->memory_released();
  });
}

std::shared_ptr<Snapshots> VariableStore::snapshots() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Snapshots> snapshots = snapshots_.lock();
  if (!snapshots) {
    snapshots = std::make_shared<DirectSnapshots>(memory_, snapshot_limit_);
    snapshots_ = snapshots;
  }
  return snapshots;
}

VariableSlot& VariableStore::slot(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<VariableSlot>& slot = slots_[name];
  if (!slot) slot = std::make_unique<VariableSlot>(name, memory_);
  return *slot;
}

void VariableStore::clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  slots_.clear();
}

void VariableStore::mark_inconsistent(const std::string& name, const std::string& why) {
  std::lock_guard<std::mutex> lock(mutex_);
  inconsistent_[name] = why;
  any_inconsistent_.store(true);
}

void VariableStore::mark_consistent(const std::string& name) {
  if (!any_inconsistent_.load()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  inconsistent_.erase(name);
  any_inconsistent_.store(!inconsistent_.empty());
}

void VariableStore::check_consistent() const {
  if (!any_inconsistent_.load()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (inconsistent_.empty()) return;
  throw FailedPreconditionError(
      fmt::format("a step failed after it had written some of its variables (such as {}), so there is no consistent "
                  "state to save. Restore a checkpoint or run the initializers. The error of the step: {}",
                  inconsistent_.begin()->first, inconsistent_.begin()->second));
}

}  // namespace longhaul
