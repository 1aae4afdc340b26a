#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "longhaul/ops/training/hyperparameter.h"

namespace longhaul {

namespace collections {
// The variables that have a moving average.
inline constexpr char kMovingAverageVariables[] = "moving_average_variables";
}  // namespace collections

struct MovingAverageOptions {
  // n, for a decay of min(decay, (1 + n) / (10 + n)): averages move faster while n is small. As a rule the step
  // counter, of which it is the count before the step.
  std::optional<Output> num_updates;
  bool zero_debias = false;  // of tensors that are no variables: see apply_to_tensors
  std::string name = "ExponentialMovingAverage";
};

// Keeps averages of variables, often better to evaluate with than the variables themselves: TensorFlow's
// tf.train.ExponentialMovingAverage. With every run of the operation that apply() adds,
//   shadow -= (1 - decay) * (shadow - variable)
//
//   ExponentialMovingAverage averages(0.999, {.num_updates = step});
//   const Operation train = optimizer.minimize(loss, step);
//   const Operation step_op = averages.apply(root.with_control_dependencies({train}));   // run this one
//
// Shadows are variables "w/ExponentialMovingAverage", saved but not trained; given Scope::variable_scope("avg"),
// apply() names them "avg/w/ExponentialMovingAverage". They are written in the same step as what they depend on: no
// checkpoint has the one without the other. To evaluate, another program builds the model without averages and restores
// them into its plain variables:
//
//   Saver saver({.var_list = save_entries(ExponentialMovingAverage(0.999).variables_to_restore(graph))});
//
// All state is in the graph. One thread at a time.
class ExponentialMovingAverage {
 public:
  // InvalidArgumentError: the decay is a number and not in [0, 1), or a float takes it for 1 (1 - 1e-8); it is a tensor
  // and no scalar of numbers; there is no name.
  explicit ExponentialMovingAverage(Hyperparameter decay, MovingAverageOptions options = {});

  // Adds a shadow, which starts as the variable does, for each of the variables, without a list for the graph's
  // trainable ones, and lists them in the collection. Returns the operation that moves all shadows, towards the values
  // after the scope's control dependencies. InvalidArgumentError: a variable is not of floats ("must be half, float, or
  // double"), or has an average here already ("Moving average already computed for"); there is no variable.
  Operation apply(const Scope& scope, const std::vector<Variable>& variables = {});

  // The same for tensors of a known shape, a loss for one. Their shadows start with 0. With zero_debias a shadow is
  //   biased / (1 - decay ^ n),  biased -= (1 - decay) * (biased - tensor)
  // where n counts the updates: the 0 at the start does not pull it down (Kingma and Ba, arXiv 1412.6980, section 3).
  // Then it has two variables beside it, "biased" and "local_step".
  Operation apply_to_tensors(const Scope& scope, const std::vector<Output>& tensors);

  // The shadow, if apply() has made one.
  std::optional<Variable> average(const Variable& variable) const { return average(variable.ref()); }
  std::optional<Variable> average(const Output& tensor) const;
  // The shadow's name in checkpoints, also if only another program makes it: in the variable scopes of `scope`.
  std::string average_name(const Variable& variable) const { return average_name("", variable); }
  std::string average_name(const Scope& scope, const Variable& variable) const {
    return average_name(scope.slot_prefix(), variable);
  }

  // What a saver is to restore so that variables take the values of their averages (train/saved_state/save_entry.h):
  // these by the names of their shadows, and all other global variables by their own. The averaged ones are those
  // given, else the trainable ones and those of the collection. Several variables of one name are slices of a
  // partitioned one. With a scope: of its graph, where the averages were made in its variable scopes.
  std::map<std::string, std::vector<Variable>> variables_to_restore(const Graph& graph,
                                                                    const std::vector<Variable>& averaged = {}) const {
    return variables_to_restore("", graph, averaged);
  }
  std::map<std::string, std::vector<Variable>> variables_to_restore(const Scope& scope,
                                                                    const std::vector<Variable>& averaged = {}) const {
    return variables_to_restore(scope.slot_prefix(), scope.graph(), averaged);
  }

 private:
  std::string average_name(const std::string& prefix, const Variable& variable) const;
  std::map<std::string, std::vector<Variable>> variables_to_restore(const std::string& prefix, const Graph& graph,
                                                                    const std::vector<Variable>& averaged) const;
  Output update_rate(const Scope& scope) const;
  void check_new(const Output& averaged) const;
  Variable add_shadow(const Scope& scope, const Variable& variable);
  Variable add_shadow(const Scope& scope, const Output& tensor);
  Operation move_debiased(const Scope& scope, const Variable& shadow, const Output& value, const Output& rate) const;

  const Hyperparameter decay_;
  const MovingAverageOptions options_;
  std::unordered_map<Output, Variable, OutputHash> shadows_;  // by the variable's ref, or by the tensor
};

}  // namespace longhaul
