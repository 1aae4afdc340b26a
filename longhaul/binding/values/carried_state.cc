#include "longhaul/binding/values/carried_state.h"

#include <algorithm>

namespace longhaul {

CarriedState::Look CarriedState::look_at(const at::Tensor& tensor) {
  return {c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr()),
          tensor.defined() ? TensorLook::of(tensor) : TensorLook()};
}

void CarriedState::add(const std::string& name, at::Tensor* tensor) {
  names_.push_back(name);
  tensors_.push_back(tensor);
}

std::optional<std::string> CarriedState::with_history() const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i]->defined() && !tensors_[i]->is_leaf()) return names_[i];
  }
  return std::nullopt;
}

bool CarriedState::contains(const c10::TensorImpl* tensor) const {
  return std::any_of(tensors_.begin(), tensors_.end(),
                     [&](const at::Tensor* carried) { return carried->unsafeGetTensorImpl() == tensor; });
}

void CarriedState::begin() {
  kept.begin();
  before_.clear();
  for (const at::Tensor* tensor : tensors_) before_.push_back(look_at(*tensor));
}

bool CarriedState::changed() const {
  if (kept.changed()) return true;
  return !std::equal(tensors_.begin(), tensors_.end(), before_.begin(), before_.end(),
                     [](const at::Tensor* tensor, const Look& before) {
                       const Look now = look_at(*tensor);
                       return now.tensor == before.tensor && now.look.same_value(before.look);
                     });
}

}  // namespace longhaul
