#pragma once

#include <string_view>

#include "longhaul/ops/state_ops.h"

namespace longhaul {

// A number, or a scalar tensor of the graph: a learning rate that changes, a limit that is fed.
class Hyperparameter {
 public:
  Hyperparameter(double number) : number_(number) {}
  Hyperparameter(Output tensor);  // InvalidArgumentError: it is not valid
  Hyperparameter(const Variable& variable) : Hyperparameter(Output(variable)) {}

  // nullptr: it is the other.
  const double* number() const { return tensor_.valid() ? nullptr : &number_; }
  const Output* tensor() const { return tensor_.valid() ? &tensor_ : nullptr; }
  // The tensor; for a number a new constant: a double beside doubles, else a float.
  Output as_tensor(const Scope& scope, DType beside, std::string_view name) const;

 private:
  double number_ = 0;
  Output tensor_;
};

namespace ops {

// InvalidArgumentError unless `holds`: "FUNCTION: ARGUMENT must be WANTED, not VALUE".
void check_argument(bool holds, std::string_view function, std::string_view argument, std::string_view wanted,
                    double value);

}  // namespace ops
}  // namespace longhaul
