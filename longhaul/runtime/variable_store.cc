#include "longhaul/runtime/variable_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace longhaul {
namespace {

// Whether the tensor's bytes are libtorch's own and nobody but the caller's handle holds them.
bool can_be_taken(const at::Tensor& tensor) {
  return VariableSlot::exclusive(tensor) && tensor.storage().resizable() && tensor.is_contiguous() &&
         tensor.storage_offset() == 0 &&
         tensor.storage().nbytes() == static_cast<size_t>(tensor.numel()) * tensor.element_size();
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

void VariableSlot::set_program_value(const std::shared_ptr<HostFunction>& access) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!program_value_) program_value_ = access;
}

bool VariableSlot::initialized() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return initialized_locked();
}

void VariableSlot::check_initialized() const {
  if (!initialized_locked()) throw FailedPreconditionError("Attempting to use uninitialized value " + name_);
}

void VariableSlot::check_updatable() const {
  check_initialized();
  if (!program_value_) return;
  throw InvalidArgumentError(name_ + " is kept by the program, which changes it itself: only Assign may write it");
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
  if (value.is_host()) {
    value.host = copy_of(value.host);
  } else if (!can_be_taken(value.tensor)) {
    value.tensor = value.tensor.clone(at::MemoryFormat::Contiguous);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  value_ = std::move(value);
  spare_.reset();
  return value_;
}

Value VariableSlot::assign_to_program(Value value) {
  (*program_value_)({value.to_host()});
  std::lock_guard<std::mutex> lock(mutex_);
  program_value_assigned_ = true;
  return value;
}

at::Tensor VariableSlot::take_spare() {
  if (spare_.defined() && exclusive(spare_) && spare_.sizes() == value_.tensor.sizes()) return std::move(spare_);
  return at::empty_like(value_.tensor);
}

VariableSlot& VariableStore::slot(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<VariableSlot>& slot = slots_[name];
  if (!slot) slot = std::make_unique<VariableSlot>(name);
  return *slot;
}

void VariableStore::clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  slots_.clear();
}

void VariableStore::mark_torn(const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  torn_.insert(name);
  any_torn_.store(true);
}

void VariableStore::mark_whole(const std::string& name) {
  if (!any_torn_.load()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  torn_.erase(name);
  any_torn_.store(!torn_.empty());
}

void VariableStore::check_whole() const {
  if (!any_torn_.load()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (torn_.empty()) return;
  throw FailedPreconditionError(fmt::format(
      "a step failed when it had written some of its variables ({} among them), so there is no state to save; "
      "restore a checkpoint or run the initializers",
      *torn_.begin()));
}

}  // namespace longhaul
