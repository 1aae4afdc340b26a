#include "longhaul/binding/fetched_loss.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/runtime/aten/aten_tensor.h"

namespace longhaul {

// Without what made it.
void FetchedLoss::end_step(const at::Tensor& loss) {
  loss_ = loss.defined() ? loss.variable_data() : loss;
}

bool FetchedLoss::fetched() {
  sometimes_alone_ |= !with_step_;
  return sometimes_with_step_ && sometimes_alone_;
}

Tensor FetchedLoss::value() const {
  if (loss_.defined() && loss_.numel() == 1) return to_tensor(loss_.to(at::kFloat).reshape({}));
  throw InvalidArgumentError(
      fmt::format("the loss was fetched, but the step function returned {} instead of a single element",
                  loss_.defined() ? "a tensor of shape " + shape_of(loss_).to_string() : "an undefined tensor"));
}

}  // namespace longhaul
