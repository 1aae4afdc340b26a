#include "longhaul/ops/hyperparameter.h"

#include <fmt/format.h>

namespace longhaul {

Hyperparameter::Hyperparameter(Output tensor) : tensor_(tensor) {
  if (!tensor.valid()) throw InvalidArgumentError("a learning rate or another number for a step is an empty Output");
}

Output Hyperparameter::as_tensor(const Scope& scope, DType beside, std::string_view name) const {
  if (tensor_.valid()) return tensor_;
  if (beside == kDouble) return ops::constant(scope, number_, name);
  return ops::constant(scope, static_cast<float>(number_), name);
}

void ops::check_argument(bool holds, std::string_view function, std::string_view argument, std::string_view wanted,
                         double value) {
  if (!holds) throw InvalidArgumentError(fmt::format("{}: {} must be {}, not {}", function, argument, wanted, value));
}

}  // namespace longhaul
