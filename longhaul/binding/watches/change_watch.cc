#include "longhaul/binding/watches/change_watch.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "longhaul/base/log.h"
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

bool has_sum(const at::Tensor& tensor) {
  return !tensor.is_cpu() && !tensor.is_meta() && tensor.layout() == at::kStrided && tensor.numel() > 0 &&
         at::isFloatingType(tensor.scalar_type());
}

// The bits of these tensors' sums, which are on one device: it waits once.
std::vector<uint64_t> sums_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> sums;
  for (const at::Tensor& tensor : tensors) sums.push_back(at::sum(tensor.detach(), at::kDouble));
  const at::Tensor on_host = at::stack(sums).cpu();
  std::vector<uint64_t> bits(tensors.size());
  std::memcpy(bits.data(), on_host.data_ptr(), on_host.nbytes());
  return bits;
}

// Adds the sums of those that are not on the CPU. A device that cannot make them is not looked at.
void look_at_devices(const std::vector<at::Tensor>& tensors, std::vector<TensorLook>& looks) {
  std::map<std::string, std::vector<size_t>> by_device;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (has_sum(tensors[i])) by_device[tensors[i].device().str()].push_back(i);
  }
  const at::NoGradGuard no_grad;
  for (const auto& [device, places] : by_device) {
    std::vector<at::Tensor> there;
    for (const size_t i : places) there.push_back(tensors[i]);
    try {
      const std::vector<uint64_t> sums = sums_of(there);
      for (size_t i = 0; i < places.size(); ++i) {
        looks[places[i]].elements = sums[i];
        looks[places[i]].has_elements = true;
      }
    } catch (const c10::Error& error) {
      log_info("{}: whether the program has changed values there is not looked at in this step: {}", device,
               error.what_without_backtrace());
    }
  }
}

void look_at(const std::vector<at::Tensor>& tensors, bool with_devices, std::vector<TensorLook>& looks) {
  for (size_t i = 0; i < tensors.size(); ++i) looks[i] = TensorLook::of(tensors[i]);
  if (with_devices) look_at_devices(tensors, looks);
}

}  // namespace

TensorLook TensorLook::of(const at::Tensor& tensor) {
  TensorLook look{.version = version_of(tensor), .elements = some_elements(tensor), .has_elements = tensor.is_cpu()};
  if (!tensor.is_leaf()) return look;
  if (const at::Tensor& gradient = tensor.grad(); gradient.defined()) {
    look.gradient = gradient_memory(gradient);
    look.gradient_version = version_of(gradient);
  }
  return look;
}

std::vector<TensorLook> looks_at_all(const std::vector<at::Tensor>& tensors) {
  std::vector<TensorLook> looks(tensors.size());
  look_at(tensors, /*with_devices=*/true, looks);
  return looks;
}

void ChangeWatch::add(const at::Tensor& tensor) {
  tensors_.push_back(tensor);
  before_.emplace_back();
  after_.emplace_back();
  first_.emplace_back();
  known_.push_back(false);
}

void ChangeWatch::begin(bool looks_at_devices) {
  written_between_.reset();
  const bool looked = std::exchange(looks_at_devices_, looks_at_devices);
  look_at(tensors_, looks_at_devices || looked, before_);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (known_[i] && !written_between_ && !before_[i].same_value(after_[i])) written_between_ = i;
    if (!first_[i].has_elements) first_[i] = before_[i];
  }
  forget();
}

void ChangeWatch::end() {
  look_at(tensors_, looks_at_devices_, after_);
  known_.assign(known_.size(), true);
}

void ChangeWatch::assigned(const at::Tensor& tensor) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].is_alias_of(tensor)) continue;
    after_[i] = looks_at_all({tensors_[i]})[0];
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

bool ChangeWatch::changed_on_devices() const {
  const std::vector<TensorLook> now = looks_at_all(tensors_);
  for (size_t i = 0; i < now.size(); ++i) {
    if (has_sum(tensors_[i]) && (!now[i].has_elements || !now[i].same_value(first_[i]))) return true;
  }
  return false;
}

bool ChangeWatch::changed() const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorLook now = TensorLook::of(tensors_[i]);
    if (!now.same_value(before_[i]) || has_new_gradient(tensors_[i], before_[i], now)) return true;
  }
  return false;
}

}  // namespace longhaul
