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
  Output gradient;  // not valid: the loss does not depend on the variable; may be of some rows (indexed_slices_of)
  Variable variable;
};

// Adds the operations that change variables so that a loss gets smaller:
//   Operation train = GradientDescentOptimizer(0.1).minimize(loss, global_step(scope));
// All state is in the graph: the object may go once the operations are there. One thread at a time.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // The operation that does a step: computes the gradients, updates all variables, and then adds one to the step
  // counter, if one is given. Without a list the variables are the graph's trainable ones. Without a scope the
  // operations are added outside of all. The operation is added to the collection "train_op".
  // InvalidArgumentError: no variable has a gradient, or there is none; the message names them.
  Operation minimize(const Output& loss, const std::optional<Variable>& global_step = {},
                     const std::vector<Variable>& variables = {});
  Operation minimize(const Scope& scope, const Output& loss, const std::optional<Variable>& global_step = {},
                     const std::vector<Variable>& variables = {});

  // The two halves of minimize, for who wants to change the gradients between them.
  std::vector<GradientAndVariable> compute_gradients(const Scope& scope, const Output& loss,
                                                     const std::vector<Variable>& variables = {}) const;
  Operation apply_gradients(const Scope& scope, const std::vector<GradientAndVariable>& gradients,
                            const std::optional<Variable>& global_step = {});

  // What the optimizer remembers beside a variable ("momentum", "m", ...); nothing if it has no such slot, or not yet.
  std::optional<Variable> get_slot(const Variable& variable, const std::string& slot) const;
  // All variables that the optimizer has made: slots, and powers of Adam's betas.
  const std::vector<Variable>& variables() const { return own_variables_; }

 protected:
  explicit Optimizer(std::string name);  // InvalidArgumentError: it is empty

  // Adds the operation that updates one variable.
  virtual Operation apply(const Scope& scope, const Output& gradient, const Variable& variable) = 0;
  // Adds the operation that updates the rows of a variable that its gradient is for, where the optimizer has such a
  // rule; not valid: it has none, and apply() gets the gradient as a tensor.
  virtual Operation apply_sparse(const Scope&, const IndexedSlices&, const Variable&) { return {}; }
  // Before and after all variables' updates; finish returns what it added.
  virtual void prepare(const Scope&, const std::vector<Variable>&) {}
  virtual std::vector<Operation> finish(const Scope&, const std::vector<Operation>&) { return {}; }

  // A number as a constant, made once for each dtype. As in TensorFlow it is rounded to a float, beside doubles too.
  // InvalidArgumentError: it is no finite float, or a tensor and no scalar of numbers.
  Output hyper(const Hyperparameter& parameter, const std::string& name, const Variable& variable);

  // A variable like `like` and beside it, filled with `value`; its name is "LIKE/NAME", with a suffix if that is taken,
  // after those of the step's variable scopes.
  Variable make_slot(const Variable& like, const std::string& slot, double value);
  // A float that belongs to the optimizer alone, in the scope that the step is added to. As TensorFlow's, it is a float
  // whatever the variables are.
  Variable make_scalar(const std::string& name, double value);

 private:
  Operation update(const Scope& scope, const Output& gradient, const Variable& variable);

  const std::string name_;
  std::optional<Scope> outer_scope_, scope_;  // that the step is added to; of the operations that are being added
  std::map<std::pair<std::string, DType>, Output> hypers_;
  std::map<std::pair<int, std::string>, Variable> slots_;  // by the variable's id and the slot's name
  std::vector<Variable> own_variables_;
};

}  // namespace longhaul
