#pragma once

#include <string_view>

#include "longhaul/ops/state_ops.h"

namespace longhaul {

// A number, or a scalar tensor of the graph, such as a changing learning rate or a fed limit.
class Hyperparameter {
 public:
  Hyperparameter(double number) : number_(number) {}
  Hyperparameter(Output tensor);  // InvalidArgumentError: the Output is invalid
  Hyperparameter(const Variable& variable) : Hyperparameter(Output(variable)) {}

  // number() is nullptr for a tensor, tensor() for a number.
  const double* number() const { return tensor_.valid() ? nullptr : &number_; }
  const Output* tensor() const { return tensor_.valid() ? &tensor_ : nullptr; }
  // The tensor, or a new constant for a number: a double if `like` is double, else a float.
  Output as_tensor(const Scope& scope, DType like, std::string_view name) const;

 private:
  double number_ = 0;
  Output tensor_;
};

namespace ops {

// Throws unless `holds`: InvalidArgumentError "FUNCTION: ARGUMENT must be WANTED, not VALUE".
void check_argument(bool holds, std::string_view function, std::string_view argument, std::string_view wanted,
                    double value);
// Throws unless the value is a finite float, and becomes 0 only if it is 0: hyperparameters are kept as floats.
void check_float(std::string_view function, std::string_view argument, double value);
// Throws unless the value is at least 0 and below 1, even as a float: with 1 a moving average would never change.
void check_decay(std::string_view function, std::string_view argument, double value);
// Throws unless it is a number, or a tensor that can be one: not a string, and with one element, as far as its shape is
// known.
void check_scalar(std::string_view function, std::string_view argument, const Hyperparameter& parameter);

}  // namespace ops
}  // namespace longhaul
