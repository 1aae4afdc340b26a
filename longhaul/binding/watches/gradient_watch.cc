#include "longhaul/binding/watches/gradient_watch.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

namespace longhaul {
namespace {

// Whether a gradient that comes to a parameter's hook is only handed to the program, by autograd::grad(), and added to
// none. Hooks see such ones in libtorch 2, and not in 1.13.
bool is_only_captured(const at::Tensor& parameter) {
  const auto* const nodes = torch::autograd::get_current_graph_task_exec_info();  // empty: all are computed and added
  if (nodes == nullptr) return false;
  const auto found = nodes->find(torch::autograd::impl::grad_accumulator(parameter).get());
  return found != nodes->end() && found->second.captures_ != nullptr && !found->second.needed_;
}

}  // namespace

GradientWatch::~GradientWatch() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (hooks_[i]) tensors_[i].remove_hook(*hooks_[i]);
  }
}

void GradientWatch::add(const at::Tensor& tensor) {
  tensors_.push_back(tensor);
  seen_.push_back(
      std::make_shared<Seen>(Seen{.tensor = c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr())}));
  hooks_.emplace_back();
  left_.emplace_back();
}

void GradientWatch::add_hooks() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (hooks_[i] || !tensors_[i].requires_grad() || !tensors_[i].is_leaf()) continue;
    hooks_[i] = tensors_[i].register_hook([seen = seen_[i]](const at::Tensor& arriving) {
      if (seen->looks) look(*seen, arriving);
    });
  }
}

void GradientWatch::look(Seen& seen, const at::Tensor& arriving) {
  const auto impl = seen.tensor.lock();
  if (!impl) return;
  const at::NoGradGuard no_grad;
  const at::Tensor tensor(impl);
  if (is_only_captured(tensor)) return;
  seen.came = true;
  if (seen.is_lost && (!tensor.grad().defined() || is_zero_gradient(tensor.grad()))) seen.is_lost = false;
  if (!seen.place) seen.place = GradientPlace::of(arriving, tensor);
}

void GradientWatch::take_what_is_lost() {
  if (!std::exchange(snapshot_taken_, false)) return;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const at::Tensor& gradient = tensors_[i].grad();
    seen_[i]->is_lost = gradient.defined() && !is_zero_gradient(gradient);
    seen_[i]->memory = gradient_memory(gradient);
  }
}

void GradientWatch::begin(bool looks_at_places) {
  add_hooks();
  take_what_is_lost();
  looks_at_places_ = looks_at_places;
  const bool looks = this->looks();
  written_between_.reset();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    seen_[i]->place.reset();
    seen_[i]->came = false;
    seen_[i]->looks = looks;
    const std::optional<GradientPlace> left = std::exchange(left_[i], std::nullopt);
    if (left && !written_between_ && left->has_changed(tensors_[i])) written_between_ = i;
  }
}

bool GradientWatch::looks() const {
  return looks_at_places_ || std::any_of(seen_.begin(), seen_.end(), [](const auto& seen) { return seen->is_lost; });
}

void GradientWatch::stop_looking() {
  for (const auto& seen : seen_) seen->looks = false;
}

void GradientWatch::end() {
  stop_looking();
  any_came_ = std::any_of(seen_.begin(), seen_.end(), [](const auto& seen) { return seen->came; });
  forget_replaced();
  if (!looks_at_places_) return;
  for (size_t i = 0; i < tensors_.size(); ++i) left_[i] = GradientPlace::of(tensors_[i].grad(), tensors_[i]);
}

// The program has put others in their place, as those of autograd::grad(), which come to no hook.
void GradientWatch::forget_replaced() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const void* const memory = seen_[i]->is_lost && !seen_[i]->came ? gradient_memory(tensors_[i].grad()) : nullptr;
    if (memory != nullptr && memory != seen_[i]->memory) seen_[i]->is_lost = false;
  }
}

void GradientWatch::abandon() {
  stop_looking();
}

void GradientWatch::forget() {
  snapshot_taken_ = false;
  for (const auto& seen : seen_) seen->is_lost = false;
  std::fill(left_.begin(), left_.end(), std::nullopt);
}

void GradientWatch::snapshot() {
  snapshot_taken_ = true;
}

bool GradientWatch::changed_in_step(size_t i) const {
  const std::optional<GradientPlace>& place = seen_[i]->place;
  return place && place->has_changed(tensors_[i]);
}

}  // namespace longhaul
