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

bool VariableSlot::initialized() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return value_.defined();
}

void VariableSlot::check_initialized() const {
  if (!value_.defined()) throw FailedPreconditionError("Attempting to use uninitialized value " + name_);
}

Value VariableSlot::read() const {
  std::lock_guard<std::mutex> lock(mutex_);
  check_initialized();
  return value_;
}

Value VariableSlot::assign(Value value) {
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
