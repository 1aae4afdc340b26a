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
  // n, for a decay of min(decay, (1 + n) / (10 + n)), with which averages move faster while n is small. Usually the
  // step counter, with its value before the step.
  std::optional<Output> num_updates{};
  bool zero_debias = false;  // for tensors other than variables: see apply_to_tensors
  std::string name = "ExponentialMovingAverage";
};

// Keeps averages of variables, with which a model often evaluates better: TensorFlow's
// tf.train.ExponentialMovingAverage. Every run of the operation that apply() adds computes
//   shadow -= (1 - decay) * (shadow - variable)
//
//   ExponentialMovingAverage averages(0.999, {.num_updates = step});
//   const Operation train = optimizer.minimize(loss, step);
//   const Operation step_op = averages.apply(root.with_control_dependencies({train}));   // run this one
//
// The averages ("shadows") are variables "w/ExponentialMovingAverage", saved but not trained; in
// Scope::variable_scope("avg"), apply() names them "avg/w/ExponentialMovingAverage". They are written in the same step
// as the variables, so no checkpoint contains one without the other. To evaluate, another program builds the model
// without averages and restores them into its plain variables:
//
//   Saver saver({.var_list = save_entries(ExponentialMovingAverage(0.999).variables_to_restore(graph))});
//
// All state is in the graph. One thread at a time may call.
class ExponentialMovingAverage {
 public:
  // InvalidArgumentError: the decay is a number but not in [0, 1), or becomes 1 as a float (1 - 1e-8); it is a tensor
  // but not a numeric scalar; the name is empty.
  explicit ExponentialMovingAverage(Hyperparameter decay, MovingAverageOptions options = {});

  // Adds a shadow, with the variable's initial value, for each of the variables, by default the graph's trainable ones,
  // and adds the variables to the collection. Returns the operation that moves all shadows towards the values that the
  // variables have after the scope's control dependencies. InvalidArgumentError: a variable is not floating-point
  // ("must be half, float, or double"), or has an average here already ("Moving average already computed for"); there
  // are no variables.
  Operation apply(const Scope& scope, const std::vector<Variable>& variables = {});

  // The same for tensors of a known shape, such as a loss. Their shadows start at 0. With zero_debias a shadow is
  //   biased / (1 - decay ^ n),  biased -= (1 - decay) * (biased - tensor)
  // where n counts the updates, so that the initial 0 does not bias it (Kingma and Ba, arXiv 1412.6980, section 3). The
  // shadow then has two more variables, "biased" and "local_step".
  Operation apply_to_tensors(const Scope& scope, const std::vector<Output>& tensors);

  // The shadow; nullopt if apply() did not make one.
  std::optional<Variable> average(const Variable& variable) const { return average(variable.ref()); }
  std::optional<Variable> average(const Output& tensor) const;
  // The name of the shadow in checkpoints, in the variable scopes of `scope`. The shadow need not exist in this
  // program.
  std::string average_name(const Variable& variable) const { return average_name("", variable); }
  std::string average_name(const Scope& scope, const Variable& variable) const {
    return average_name(scope.slot_prefix(), variable);
  }

  // The variables for a saver to restore, so that they get the values of their averages
  // (train/saved_state/save_entry.h): averaged variables by the names of their shadows, all other global variables by
  // their own names. The averaged variables are those given, by default the trainable ones and those of the collection.
  // Several variables of one name are slices of a partitioned variable. The form with a scope takes its graph, for
  // averages that were made in its variable scopes.
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
