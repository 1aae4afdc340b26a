#include "longhaul/ops/training/hyperparameter.h"

#include <fmt/format.h>

#include <cmath>

namespace longhaul {

Hyperparameter::Hyperparameter(Output tensor) : tensor_(tensor) {
  if (!tensor.valid()) throw InvalidArgumentError("a learning rate or another hyperparameter is an empty Output");
}

Output Hyperparameter::as_tensor(const Scope& scope, DType like, std::string_view name) const {
  if (tensor_.valid()) return tensor_;
  if (like == kDouble) return ops::constant(scope, number_, name);
  return ops::constant(scope, static_cast<float>(number_), name);
}

void ops::check_argument(bool holds, std::string_view function, std::string_view argument, std::string_view wanted,
                         double value) {
  if (!holds) throw InvalidArgumentError(fmt::format("{}: {} must be {}, not {}", function, argument, wanted, value));
}

void ops::check_float(std::string_view function, std::string_view argument, double value) {
  const auto rounded = static_cast<float>(value);
  const bool fits = std::isfinite(rounded) && (rounded != 0 || value == 0);
  check_argument(fits, function, argument, "finite and within the range of a float (it is stored as one)", value);
}

void ops::check_decay(std::string_view function, std::string_view argument, double value) {
  check_argument(value >= 0 && value < 1, function, argument, "at least 0 and below 1", value);
  check_argument(static_cast<float>(value) < 1, function, argument, "a number that does not round to 1 as a float",
                 value);
}

void ops::check_scalar(std::string_view function, std::string_view argument, const Hyperparameter& parameter) {
  const Output* tensor = parameter.tensor();
  if (tensor == nullptr) return;
  const DType dtype = tensor->dtype();
  const Shape& shape = tensor->shape();
  const bool is_number = is_floating(dtype) || is_integer(dtype) || dtype == kBool;
  if (is_number && (!shape.fully_defined() || shape.num_elements() == 1)) return;
  throw InvalidArgumentError(fmt::format("{}: {} must be a number, but {} is {} of shape {}", function, argument,
                                         tensor->name(), dtype_name(dtype), shape.to_string()));
}

}  // namespace longhaul
