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
        "Attempting to use uninitialized value {}; run its initializer or restore a checkpoint first", name()));
  }
}

void VariableSlot::check_updatable() const {
  check_initialized();
  if (!program_value_) return;
  throw InvalidArgumentError(name() + " belongs to the program, which changes it itself; only Assign may write it");
}

Value VariableSlot::read() const {
  std::unique_lock<std::mutex> lock(mutex_);
  check_initialized();
  if (!program_value_) return value_;
  lock.unlock();
  return Value((*program_value_)({}).at(0));
}

void VariableSlot::release() {
  std::lock_guard<std::mutex> lock(mutex_);
  memory_.replaced(value_.tensor, {});
  value_ = Value();
}

Value VariableSlot::assign(Value value) {
  if (std::unique_lock<std::mutex> lock(mutex_); program_value_) {
    lock.unlock();
    return assign_to_program(std::move(value));
  }
  std::unique_lock<std::mutex> lock(mutex_);
  if (value.is_host()) {
    value.host = copy_of(value.host);
  } else if (can_copy_in_place(value.tensor)) {
    value_.tensor.copy_(value.tensor);
    return value_;
  } else if (!value.tensor.is_cpu() && is_alone(value.tensor) && !can_take(value.tensor)) {
    value.tensor = memory_.adopt(value.tensor);
  } else if (!can_take(value.tensor)) {
    value.tensor = memory_.make_like(value.tensor).copy_(value.tensor);
  }
  memory_.replaced(value_.tensor, value.tensor);
  const bool is_first = !value_.defined();
  value_ = std::move(value);
  Value assigned = value_;
  lock.unlock();
  if (is_first) changes_->bump();
  return assigned;
}

bool VariableSlot::can_take(const at::Tensor& tensor) const {
  return is_alone(tensor) && memory_.accepts(tensor);
}

// Small ones are taken or copied anew, whichever it is.
bool VariableSlot::can_copy_in_place(const at::Tensor& tensor) const {
  const at::Tensor& mine = value_.tensor;
  return mine.defined() && bytes_of(mine) >= VariableMemory::kSmallest && exclusive(mine) && !can_take(tensor) &&
         mine.sizes() == tensor.sizes() && mine.scalar_type() == tensor.scalar_type() &&
         mine.device() == tensor.device();
}

std::pair<const void*, size_t> VariableSlot::held_buffer() const {
  std::lock_guard<std::mutex> lock(mutex_);
  const at::Tensor& tensor = value_.tensor;
  if (!tensor.defined() || exclusive(tensor) || bytes_of(tensor) < VariableMemory::kSmallest) return {nullptr, 0};
  return {tensor.data_ptr(), bytes_of(tensor)};
}

Value VariableSlot::assign_to_program(Value value) {
  (*program_value_)({value.to_host()});
  std::unique_lock<std::mutex> lock(mutex_);
  const bool is_first = !std::exchange(program_value_assigned_, true);
  lock.unlock();
  if (is_first) changes_->bump();
  return value;
}

VariableStore::VariableStore(std::optional<uint64_t> snapshot_memory, Clock& clock)
    : memory_(snapshot_memory.value_or(UINT64_MAX)),
      snapshot_limit_(std::make_shared<SnapshotLimit>(memory_, snapshot_memory)),
      changes_(std::make_shared<StateChanges>(clock)) {
  if (!snapshot_memory) return;
  memory_.set_on_release([limit = std::weak_ptr(snapshot_limit_)] {
    if (const std::shared_ptr<SnapshotLimit> still = limit.lock()) still->memory_released();
  });
}

VariableStore::VariableStore(const VariableStore* neighbour)
    : memory_(neighbour->memory_), snapshot_limit_(neighbour->snapshot_limit_), changes_(neighbour->changes_) {}

std::shared_ptr<Snapshots> VariableStore::snapshots() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Snapshots> snapshots = snapshots_.lock();
  if (!snapshots) {
    snapshots = std::make_shared<DirectSnapshots>(memory_, snapshot_limit_);
    snapshots_ = snapshots;
  }
  return snapshots;
}

std::shared_ptr<VariableSlot> VariableStore::slot(const ResourceName& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<VariableSlot>& slot = slots_[name];
  if (!slot) slot = std::make_shared<VariableSlot>(name, memory_, changes_);
  return slot;
}

void VariableStore::remove(const std::vector<std::string>& containers) {
  std::vector<std::shared_ptr<VariableSlot>> gone;  // their bytes are freed without the lock
  std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(removed_, [](const auto& slot) { return slot.expired(); });
  std::erase_if(slots_, [&](auto& entry) {
    if (!is_among(entry.first.container, containers)) return false;
    removed_.push_back(entry.second);
    gone.push_back(std::move(entry.second));
    return true;
  });
  std::erase_if(inconsistent_, [&](const auto& entry) { return is_among(entry.first.container, containers); });
  any_inconsistent_.store(!inconsistent_.empty());
}

void VariableStore::clear() {
  remove({});
  std::vector<std::weak_ptr<VariableSlot>> removed;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    removed.swap(removed_);
  }
  for (const auto& slot : removed) {
    if (const std::shared_ptr<VariableSlot> held = slot.lock()) held->release();
  }
}

void VariableStore::mark_inconsistent(const VariableSlot& variable, const std::string& why) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = slots_.find(variable.full_name());
  if (found == slots_.end() || found->second.get() != &variable) return;
  inconsistent_[variable.full_name()] = why;
  any_inconsistent_.store(true);
}

void VariableStore::mark_consistent(const VariableSlot& variable) {
  if (!any_inconsistent_.load()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = slots_.find(variable.full_name());
  if (found == slots_.end() || found->second.get() != &variable) return;
  inconsistent_.erase(variable.full_name());
  any_inconsistent_.store(!inconsistent_.empty());
}

void VariableStore::check_consistent() const {
  if (!any_inconsistent_.load()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (inconsistent_.empty()) return;
  throw FailedPreconditionError(
      fmt::format("a step failed after it had written some of its variables (such as {}), so there is no consistent "
                  "state to save. Restore a checkpoint or run the initializers. The error of the step: {}",
                  inconsistent_.begin()->first.name, inconsistent_.begin()->second));
}

}  // namespace longhaul
