#include "longhaul/binding/watches/change_watch.h"

#include <algorithm>
#include <cstring>

#include "longhaul/binding/watches/gradient_place.h"

namespace longhaul {
namespace {

uint32_t version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : tensor.unsafeGetTensorImpl()->version_counter().current_version();
}

// Words that lie evenly in the tensor's memory, the first and the last among them.
uint64_t some_elements(const at::Tensor& tensor) {
  constexpr size_t kWords = 4;
  if (!tensor.is_cpu() || !tensor.is_non_overlapping_and_dense() || tensor.numel() == 0) return 0;
  const auto* bytes = static_cast<const unsigned char*>(tensor.data_ptr());
  const size_t size = tensor.nbytes(), width = std::min(size, sizeof(uint64_t));
  uint64_t mixture = 0;
  for (size_t i = 0; i < kWords; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + (size - width) * i / (kWords - 1), width);
    mixture = (mixture ^ word) * 0x9e3779b97f4a7c15;  // odd, so no bit is lost
  }
  return mixture;
}

}  // namespace

TensorLook TensorLook::of(const at::Tensor& tensor) {
  TensorLook look{.version = version_of(tensor), .elements = some_elements(tensor)};
  if (!tensor.is_leaf()) return look;
  if (const at::Tensor& gradient = tensor.grad(); gradient.defined()) {
    look.gradient = gradient_memory(gradient);
    look.gradient_version = version_of(gradient);
  }
  return look;
}

void ChangeWatch::add(const at::Tensor& tensor) {
  tensors_.push_back(tensor);
  before_.emplace_back();
  after_.emplace_back();
  known_.push_back(false);
}

void ChangeWatch::begin() {
  written_between_.reset();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    before_[i] = TensorLook::of(tensors_[i]);
    if (known_[i] && !written_between_ && !before_[i].same_value(after_[i])) written_between_ = i;
  }
  forget();
}

void ChangeWatch::end() {
  for (size_t i = 0; i < tensors_.size(); ++i) after_[i] = TensorLook::of(tensors_[i]);
  known_.assign(known_.size(), true);
}

void ChangeWatch::assigned(const at::Tensor& tensor) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].is_alias_of(tensor)) continue;
    after_[i] = TensorLook::of(tensors_[i]);
    known_[i] = true;
  }
}

void ChangeWatch::forget() {
  known_.assign(known_.size(), false);
}

// One write that leaves zeros is that of zero_grad(); by a backward and a zero_grad() there are more.
bool ChangeWatch::has_new_gradient(const at::Tensor& tensor, const TensorLook& before, const TensorLook& now) {
  if (now.gradient == nullptr || !tensor.grad().defined()) return false;
  if (now.gradient != before.gradient) return true;
  if (now.gradient_version == before.gradient_version) return false;
  return now.gradient_version != before.gradient_version + 1 || !is_zero_gradient(tensor.grad());
}

bool ChangeWatch::changed() const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorLook now = TensorLook::of(tensors_[i]);
    if (!now.same_value(before_[i]) || has_new_gradient(tensors_[i], before_[i], now)) return true;
  }
  return false;
}

}  // namespace longhaul
