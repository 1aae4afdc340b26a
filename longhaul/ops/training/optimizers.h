#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/ops/training/optimizer.h"

namespace longhaul {

// The formulas are TensorFlow's; docs/ops.md compares them with PyTorch's. `name` names the operations and the slots:
// with "AdamG" a variable's first slot is "w/AdamG"; in Scope::variable_scope("train") it is "train/w/AdamG".
//
// For a gradient of some rows (ops/indexed_slices.h), values of the same row are added first. Then the formula is
// applied to these rows; the other rows and their slots do not change. Only Adam moves all rows, as if the gradient of
// the others were zero. An index that is not a row of the variable is an InvalidArgumentError, and nothing changes.
//
// InvalidArgumentError: a number is not a finite float (including 1e-50, which becomes 0 as a float); a decay is not
// below 1 as a float (RMSProp and Adadelta accept 1 itself); an epsilon is below 0; an accumulator's initial value or
// another number is out of its range; a rate is not a numeric scalar; the name is empty.

// w -= rate * gradient
class GradientDescentOptimizer : public Optimizer {
 public:
  explicit GradientDescentOptimizer(Hyperparameter learning_rate, std::string name = "GradientDescent");

 private:
  Operation apply(const Scope& scope, const Output& gradient, const Variable& variable) override;
  Operation apply_sparse(const Scope& scope, const IndexedSlices& gradient, const Variable& variable) override;

  const Hyperparameter learning_rate_;
};

// The base of optimizers whose rule is an operation in two variants: ApplyNAME takes a gradient, SparseApplyNAME the
// values and indices of some rows.
class RowOptimizer : public Optimizer {
 protected:
  using Optimizer::Optimizer;
  // `kind` is the beginning of the type; `gradient` has the inputs that represent the gradient.
  virtual Operation add(const Scope& scope, const std::string& kind, const std::vector<Output>& gradient,
                        const Variable& variable) = 0;

 private:
  Operation apply(const Scope& scope, const Output& gradient, const Variable& variable) final;
  Operation apply_sparse(const Scope& scope, const IndexedSlices& gradient, const Variable& variable) final;
};

// a = momentum * a + gradient;  w -= rate * a, or with Nesterov's change rate * (gradient + momentum * a).
// Slot: "momentum" (w/Momentum).
class MomentumOptimizer : public RowOptimizer {
 public:
  MomentumOptimizer(Hyperparameter learning_rate, Hyperparameter momentum, bool use_nesterov = false,
                    std::string name = "Momentum");

 private:
  Operation add(const Scope& scope, const std::string& kind, const std::vector<Output>& gradient,
                const Variable& variable) override;

  const Hyperparameter learning_rate_, momentum_;
  const bool use_nesterov_;
};

// m and v: moving averages, with beta1 and beta2, of the gradient and its square; w -= rate * sqrt(1 - beta2^t) / (1 -
// beta1^t) * m / (sqrt(v) + epsilon). Slots: "m" (w/Adam), "v" (w/Adam_1); and the variables beta1_power and
// beta2_power in the scope given to minimize(), which are float whatever the dtype of the variables.
class AdamOptimizer : public Optimizer {
 public:
  explicit AdamOptimizer(Hyperparameter learning_rate = 0.001, double beta1 = 0.9, double beta2 = 0.999,
                         double epsilon = 1e-8, std::string name = "Adam");

 protected:
  Operation apply(const Scope& scope, const Output& gradient, const Variable& variable) override;

 private:
  void prepare(const Scope& scope, const std::vector<Variable>& variables) override;
  std::vector<Operation> finish(const Scope& scope, const std::vector<Operation>& updates) override;

  const Hyperparameter learning_rate_, beta1_, beta2_, epsilon_;
  std::optional<Variable> beta1_power_, beta2_power_;
};

struct AdamWOptions {
  double weight_decay = 0.01;  // not below 0
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  // Whether a variable decays, say by its name; empty: all do.
  std::function<bool(const Variable&)> decays{};
};

// Adam with a decay of the weights that is not part of the gradient: w -= rate * weight_decay * w, and then Adam's
// change. Loshchilov and Hutter, https://arxiv.org/abs/1711.05101, algorithm 2. The slots are Adam's, by this one's
// name: "m" (w/AdamW), "v" (w/AdamW_1), beta1_power and beta2_power. As in PyTorch and Keras the rate scales the decay;
// in TensorFlow 1's tf.contrib.opt.AdamWOptimizer it does not. A gradient of some rows lets all rows decay, and moves
// all, as with Adam.
class AdamWOptimizer : public AdamOptimizer {
 public:
  explicit AdamWOptimizer(Hyperparameter learning_rate = 0.001, const AdamWOptions& options = {},
                          std::string name = "AdamW");

 private:
  Operation apply(const Scope& scope, const Output& gradient, const Variable& variable) override;

  const Hyperparameter learning_rate_, weight_decay_;
  const std::function<bool(const Variable&)> decays_;
};

// a += gradient^2; w -= rate * gradient / sqrt(a). Slot: "accumulator" (w/Adagrad). Its initial value is above 0.
class AdagradOptimizer : public RowOptimizer {
 public:
  explicit AdagradOptimizer(Hyperparameter learning_rate, double initial_accumulator_value = 0.1,
                            std::string name = "Adagrad");

 private:
  Operation add(const Scope& scope, const std::string& kind, const std::vector<Output>& gradient,
                const Variable& variable) override;

  const Hyperparameter learning_rate_;
  const double initial_accumulator_value_;
};

// s: moving average of the gradient's square, 1 at the start;
// a = momentum * a + rate * gradient / sqrt(s + epsilon);  w -= a.  Slots: "rms" (w/RMSProp), "momentum" (w/RMSProp_1).
//
// If centred, it divides by sqrt(s - g^2 + epsilon) instead, an estimate of the deviation, where g is a moving average
// of the gradient. Slots then: "rms" (w/RMSProp), "mg" (w/RMSProp_1), "momentum" (w/RMSProp_2).
class RMSPropOptimizer : public RowOptimizer {
 public:
  explicit RMSPropOptimizer(Hyperparameter learning_rate, double decay = 0.9, double momentum = 0,
                            double epsilon = 1e-10, bool centered = false, std::string name = "RMSProp");

 private:
  Operation add(const Scope& scope, const std::string& kind, const std::vector<Output>& gradient,
                const Variable& variable) override;

  const Hyperparameter learning_rate_, decay_, momentum_, epsilon_;
  const bool centered_;
};

// a and u: moving averages, with rho, of the squares of the gradient and of the changes; change = sqrt(u + epsilon) /
// sqrt(a + epsilon) * gradient, with u of the previous step; w -= rate * change. Slots: "accum" (w/Adadelta),
// "accum_update" (w/Adadelta_1). Zeiler, https://arxiv.org/abs/1212.5701, whose rate is 1.
class AdadeltaOptimizer : public RowOptimizer {
 public:
  explicit AdadeltaOptimizer(Hyperparameter learning_rate = 0.001, double rho = 0.95, double epsilon = 1e-8,
                             std::string name = "Adadelta");

 private:
  Operation add(const Scope& scope, const std::string& kind, const std::vector<Output>& gradient,
                const Variable& variable) override;

  const Hyperparameter learning_rate_, rho_, epsilon_;
};

struct FtrlOptions {
  double learning_rate_power = -0.5;  // not above 0; 0: a fixed rate. The other options: not below 0
  double initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;            // of the stabilised weights
  double l2_shrinkage_regularization_strength = 0;  // of the size of the weights: added to the loss
};

// Follow the regularised leader, for sparse weights: with l1 above 0 many are exactly 0. With n the sum of the squares
// of the gradient so far:
//   n' = n + gradient^2
//   z += gradient + 2 * l2_shrinkage * w - (n'^-power - n^-power) / rate * w
//   w = |z| > l1 ? (sign(z) * l1 - z) / (n'^-power / rate + 2 * l2) : 0
// The rate must be above 0 in each step; otherwise InvalidArgumentError, and nothing changes. So linear_warmup() needs
// a start_factor above 0, and a decay an end above 0. If z is NaN, so is w. Slots: "accum" (w/Ftrl), "linear"
// (w/Ftrl_1). McMahan et al., "Ad Click Prediction", KDD 2013, algorithm 1.
class FtrlOptimizer : public RowOptimizer {
 public:
  explicit FtrlOptimizer(Hyperparameter learning_rate, const FtrlOptions& options = {}, std::string name = "Ftrl");

 private:
  Operation add(const Scope& scope, const std::string& kind, const std::vector<Output>& gradient,
                const Variable& variable) override;

  const Hyperparameter learning_rate_;
  const FtrlOptions options_;
};

}  // namespace longhaul
