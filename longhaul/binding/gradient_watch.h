#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "longhaul/binding/gradient_place.h"

namespace longhaul {

// Sees what gradients do in steps. Once a gradient was added to one that an earlier step had left, nobody can tell
// whether that had been set to zero first: so a hook on each parameter looks when a gradient comes. It also says where
// to look whether a parameter has changed, of which a step trains a few rows only.
class GradientWatch {
 public:
  GradientWatch() = default;
  ~GradientWatch();  // takes its hooks away
  GradientWatch(const GradientWatch&) = delete;

  void add(const at::Tensor& tensor);  // the numbers are those of the calls; other than parameters have no gradients

  void begin(bool looks_at_places);  // of a step
  void end();                        // of a step that did not throw
  void abandon();                    // it threw
  void forget();                     // values were assigned
  void snapshot();                   // it lacks the gradients that there are

  // Of the last step, which looked at places: whether a tensor's element has changed that a gradient came for.
  bool changed_in_step(size_t i) const;
  // A tensor of which such an element was changed between the last step and this one.
  std::optional<size_t> written_between() const { return written_between_; }
  // Of the last step, if it has changed a tensor: whether it did so by a gradient of which a snapshot lacks a part.
  bool used_lost_gradient(size_t i) const { return seen_[i]->is_lost && (seen_[i]->came || !any_came_); }

 private:
  struct Seen {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;  // whose hook has this
    bool looks = false;
    bool came = false;                   // a gradient, in this step
    bool is_lost = false;                // a snapshot lacks the gradient, and it was not set to zero since
    const void* memory = nullptr;        // the gradient's, if it is lost
    std::optional<GradientPlace> place;  // where a gradient came in this step, as it was before
  };

  static void look(Seen& seen, const at::Tensor& arriving);
  void add_hooks();
  void take_what_is_lost();
  void forget_replaced();
  void stop_looking();

  std::vector<at::Tensor> tensors_;
  std::vector<std::shared_ptr<Seen>> seen_;
  std::vector<std::optional<unsigned>> hooks_;
  std::vector<std::optional<GradientPlace>> left_;  // after the last step, where it left a gradient
  std::optional<size_t> written_between_;
  bool looks_at_places_ = false;
  bool snapshot_taken_ = false;  // since the last step
  bool any_came_ = false;        // a gradient, in the last step that looked
};

}  // namespace longhaul
