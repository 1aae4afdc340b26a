#pragma once

#include <string_view>

#include "longhaul/ops/state_ops.h"

namespace longhaul {

// A number, or a scalar tensor of the graph, such as a changing learning rate or a fed limit.
class Hyperparameter {
 public:
  Hyperparameter(double number) : number_(number) {}
  Hyperparameter(Output tensor);  // InvalidArgumentError: it is not valid
  Hyperparameter(const Variable& variable) : Hyperparameter(Output(variable)) {}

  // nullptr: it is a tensor.
  const double* number() const { return tensor_.valid() ? nullptr : &number_; }
  const Output* tensor() const { return tensor_.valid() ? &tensor_ : nullptr; }
  // The tensor; for a number a new constant: a double if `beside` is double, else a float.
  Output as_tensor(const Scope& scope, DType beside, std::string_view name) const;

 private:
  double number_ = 0;
  Output tensor_;
};

namespace ops {

// InvalidArgumentError unless `holds`: "FUNCTION: ARGUMENT must be WANTED, not VALUE".
void check_argument(bool holds, std::string_view function, std::string_view argument, std::string_view wanted,
                    double value);
// ... the number is a finite float, and 0 only if given as 0: hyperparameters are kept as floats.
void check_float(std::string_view function, std::string_view argument, double value);
// ... it is at least 0 and below 1, also as a float: with 1 a moving average would never change.
void check_decay(std::string_view function, std::string_view argument, double value);
// ... it is a number, or a tensor that can be one: not a string, and with one element, as far as its shape is known.
void check_scalar(std::string_view function, std::string_view argument, const Hyperparameter& parameter);

}  // namespace ops
}  // namespace longhaul
