#pragma once

#include <string>
#include <vector>

#include "longhaul/ops/aten_op.h"

namespace longhaul::ops {

// One operation in the backward pass: the inputs of its derivative, and the place for its results.
//
// Arguments are named as in the operator's schema. A derivative is called only for operations all of whose inputs
// belong to arguments that its table entry lists, so all other arguments are constants.
class Backward {
 public:
  // `grads`: of the operation's outputs, invalid if there is none; at least one is valid. `needed`: for each input,
  // whether its gradient is needed.
  Backward(const Scope& scope, Operation op, std::vector<Output> grads, std::vector<bool> needed);

  const Operation& op() const { return op_; }
  const Output& grad(int output = 0) const { return grads_[static_cast<size_t>(output)]; }
  Output result(int output = 0) const { return op_.output(output); }

  bool has(const std::string& argument) const { return find_edge(argument) >= 0; }
  bool needs(const std::string& argument) const;
  bool needs_element(size_t input) const { return needed_[input]; }
  Output input(const std::string& argument) const;  // invalid: not given

  // The operation's value for an argument, to pass on; `otherwise` if it was omitted.
  Arg argument(const std::string& name, Arg otherwise = int64_t{0}) const;
  // A constant argument; `otherwise` if it was omitted.
  template <typename T>
  T constant(const std::string& name, const T& otherwise) const {
    const T* found = op_.find_attr<T>(name);
    return found == nullptr ? otherwise : *found;
  }
  // A constant number; Scalar arguments may have been given as integers.
  double number(const std::string& name, double otherwise) const;

  // Sets an input's gradient; an argument of several tensors has them in order.
  void give(const std::string& argument, Output gradient, int element = 0);
  // Sets an input's gradient, summed over broadcast dimensions and cast to the input's dtype.
  void give_like(const std::string& argument, const Output& gradient);
  const std::vector<Output>& given() const { return given_; }

  // Adds an operator; returns its first output, or the operation.
  Output aten(const std::string& type, const NamedArgs& arguments) const;
  Operation aten_op(const std::string& type, const NamedArgs& arguments) const;

  Output times(const Output& a, const Output& b) const;
  Output times(const Output& a, double factor) const;
  Output negative(const Output& a) const;
  Output transposed(const Output& matrix) const;

  // A tensor's sizes, for an int[]: a constant if they are known, else a Shape operation.
  Arg sizes(const Output& of) const;
  // The same for a reshape, where one size may be inferred.
  Arg reshape_sizes(const Output& of) const;
  Output reshaped_like(const Output& value, const Output& like) const;
  Output summed_like(const Output& gradient, const Output& input) const;

  const Scope& scope() const { return scope_; }

 private:
  int find_edge(const std::string& argument) const;
  bool may_be_broadcast(const Output& input) const;

  const Scope scope_;
  const Operation op_;
  const std::vector<Output> grads_;
  const std::vector<bool> needed_;
  std::vector<std::string> edges_;
  std::vector<Output> given_;
};

}  // namespace longhaul::ops
