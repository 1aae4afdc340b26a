#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "longhaul/binding/watches/gradient_place.h"

namespace longhaul {

// Observes gradients during steps. Once a gradient has been added to one left by an earlier step, it is too late to
// tell whether that was zeroed first: so a hook on each parameter checks when a gradient arrives. It also tells which
// element to compare to see whether a parameter has changed, as a step may train only a few of its rows.
class GradientWatch {
 public:
  GradientWatch() = default;
  ~GradientWatch();  // removes its hooks
  GradientWatch(const GradientWatch&) = delete;

  void add(const at::Tensor& tensor);  // numbered in the order of calls; only parameters have gradients

  void begin(bool looks_at_places);  // of a step
  bool looks() const;                // in the step under way: it looks at places, or gradients are lost
  void end();                        // of a step that did not throw
  void abandon();                    // the step threw
  void forget();                     // values were assigned
  void snapshot();                   // which lacks the current gradients

  // For the last step, if it looked at places: whether it changed the element of tensor `i` that had a gradient.
  bool changed_in_step(size_t i) const;
  // A tensor whose element of this kind changed between the last step and this one.
  std::optional<size_t> written_between() const { return written_between_; }
  // For the last step, if it changed tensor `i`: whether by a gradient of which a snapshot lacks a part.
  bool used_lost_gradient(size_t i) const { return seen_[i]->is_lost && (seen_[i]->came || !any_came_); }

 private:
  struct Seen {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;  // whose hook has this
    bool looks = false;
    bool came = false;                   // a gradient arrived in this step
    bool is_lost = false;                // a snapshot lacks the gradient, which was not zeroed since
    const void* memory = nullptr;        // the gradient's, if it is lost
    std::optional<GradientPlace> place;  // where a gradient arrived in this step, with the previous value
  };

  static void look(Seen& seen, const at::Tensor& arriving);
  void add_hooks();
  void take_what_is_lost();
  void forget_replaced();
  void stop_looking();

  std::vector<at::Tensor> tensors_;
  std::vector<std::shared_ptr<Seen>> seen_;
  std::vector<std::optional<unsigned>> hooks_;
  std::vector<std::optional<GradientPlace>> left_;  // after the last step, if it left a gradient
  std::optional<size_t> written_between_;
  bool looks_at_places_ = false;
  bool snapshot_taken_ = false;  // since the last step
  bool any_came_ = false;        // a gradient arrived in the last step that looked
};

}  // namespace longhaul
