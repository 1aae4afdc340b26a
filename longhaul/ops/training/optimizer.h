#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/ops/indexed_slices.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/ops/training/hyperparameter.h"

namespace longhaul {

struct GradientAndVariable {
  Output gradient;  // may cover only some rows (indexed_slices_of); invalid: the loss does not depend on the variable
  Variable variable;
};

// Adds the operations that change variables to reduce a loss:
//   Operation train = GradientDescentOptimizer(0.1).minimize(loss, global_step(scope));
// All state is in the graph, so the object may be destroyed once the operations are added. One thread at a time may
// call.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Returns the operation that makes a step: it computes the gradients, updates all variables, and then increments the
  // step counter, if one is given. The variables are by default the graph's trainable ones. Without a scope, the
  // operations are added outside all scopes. The returned operation is added to the collection "train_op".
  // InvalidArgumentError: there are no variables, or none of them has a gradient; the message names them.
  Operation minimize(const Output& loss, const std::optional<Variable>& global_step = {},
                     const std::vector<Variable>& variables = {});
  Operation minimize(const Scope& scope, const Output& loss, const std::optional<Variable>& global_step = {},
                     const std::vector<Variable>& variables = {});

  // The two halves of minimize, for changing the gradients in between.
  std::vector<GradientAndVariable> compute_gradients(const Scope& scope, const Output& loss,
                                                     const std::vector<Variable>& variables = {}) const;
  virtual Operation apply_gradients(const Scope& scope, const std::vector<GradientAndVariable>& gradients,
                                    const std::optional<Variable>& global_step = {});

  // The optimizer's slot for a variable ("momentum", "m", ...); nullopt if it has no such slot, or has not made it yet.
  virtual std::optional<Variable> get_slot(const Variable& variable, const std::string& slot) const;
  // All variables that the optimizer has created: slots, and the powers of Adam's betas.
  virtual const std::vector<Variable>& variables() const { return own_variables_; }

 protected:
  explicit Optimizer(std::string name);  // InvalidArgumentError: the name is empty

  // Adds the operation that updates one variable.
  virtual Operation apply(const Scope& scope, const Output& gradient, const Variable& variable) = 0;
  // Adds the operation that updates only the rows that the gradient has, if the optimizer has a rule for rows. Invalid:
  // it has none, and apply() gets the gradient as a tensor.
  virtual Operation apply_sparse(const Scope&, const IndexedSlices&, const Variable&) { return {}; }
  // Called before and after the updates of all variables. finish() returns the operations that it added.
  virtual void prepare(const Scope&, const std::vector<Variable>&) {}
  virtual std::vector<Operation> finish(const Scope&, const std::vector<Operation>&) { return {}; }

  // Returns the parameter as a tensor. For a number, that is a constant, created once for each dtype. As in TensorFlow,
  // it is rounded to a float, even for doubles. InvalidArgumentError: it is not a finite float, or is a tensor but not
  // a numeric scalar.
  Output hyper(const Hyperparameter& parameter, const std::string& name, const Variable& variable);

  // Makes a slot with the shape and dtype of `like`, filled with `value`. Its name is "LIKE/NAME", with a suffix if
  // that is taken and the step's variable scopes as a prefix.
  Variable make_slot(const Variable& like, const std::string& slot, double value);
  // Makes a scalar variable of the optimizer itself, in the scope to which the step is added. As in TensorFlow, it is a
  // float whatever the dtype of the variables, and on the device of `neighbour`.
  Variable make_scalar(const std::string& name, double value, const Variable& neighbour);

 private:
  Operation update(const Scope& scope, const Output& gradient, const Variable& variable);

  const std::string name_;
  std::optional<Scope> outer_scope_, scope_;  // of the step; of the operations being added
  std::map<std::pair<std::string, DType>, Output> hypers_;
  std::map<std::pair<int, std::string>, Variable> slots_;  // by the variable's id and the slot's name
  std::vector<Variable> own_variables_;
};

}  // namespace longhaul
