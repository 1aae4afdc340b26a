#include "longhaul/resume_check/likely_cause.h"

#include <algorithm>
#include <string_view>

namespace longhaul {
namespace {

constexpr char kRandomNumbers[] = "docs/guide/restarts.md#random-numbers";
constexpr char kData[] = "docs/guide/restarts.md#the-order-of-the-data";
constexpr char kOptimizers[] = "docs/guide/restarts.md#optimizers-and-schedulers";
constexpr char kOwnState[] = "docs/guide/restarts.md#state-of-the-programs-own";

bool contains_any(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](auto part) { return name.find(part) != std::string_view::npos; });
}

bool is_random_state(const std::string& name) {
  return contains_any(name, {"generators/", "longhaul/random/"});
}
bool is_position_in_data(const std::string& name) {
  return contains_any(name, {"trainer/position", "trainer/epoch_generator"});
}
// Of this library's optimizers for graphs ("w/Adam"), and of libtorch's ("Adam/w/exp_avg").
bool is_optimizer_state(const std::string& name) {
  return contains_any(name, {"Adam", "Adagrad", "RMSProp", "RMSprop", "SGD", "Momentum", "LBFGS", "Ftrl", "Adadelta",
                             "momentum_buffer", "exp_avg"});
}
// What a module's forward changes in training mode.
bool is_statistics(const std::string& name) {
  return contains_any(name, {"running_mean", "running_var", "num_batches_tracked", "moving_mean", "moving_variance"});
}

using IsOfKind = bool (*)(const std::string&);

bool has(const CheckpointComparison& comparison, IsOfKind kind) {
  return std::any_of(comparison.names.begin(), comparison.names.end(), kind);
}
bool differs(const CheckpointComparison& comparison, IsOfKind kind) {
  return std::any_of(comparison.different.begin(), comparison.different.end(),
                     [&](const TensorDifference& difference) { return kind(difference.name); });
}
bool only_differs(const CheckpointComparison& comparison, IsOfKind kind) {
  return std::all_of(comparison.different.begin(), comparison.different.end(),
                     [&](const TensorDifference& difference) { return kind(difference.name); });
}
bool has_one_sided(const CheckpointComparison& comparison) {
  return std::any_of(comparison.different.begin(), comparison.different.end(),
                     [](const TensorDifference& difference) { return difference.how.starts_with("only in "); });
}

}  // namespace

LikelyCause likely_cause(const CheckpointComparison& comparison) {
  if (has_one_sided(comparison)) {
    return {
        "Some variables are in one checkpoint alone: the program makes them, or an optimizer's state, only on some "
        "starts. Make all of them before the session, or the Trainer, begins.",
        kOptimizers};
  }
  if (differs(comparison, is_random_state)) {
    return {
        "The state of a random number generator differs: a start draws numbers that the undisturbed run does not draw, "
        "such as those of a shuffle at its beginning, or an evaluation between two steps. Draw them within steps, seed "
        "by the step's number, or keep the state around them (KeepRandomState).",
        kRandomNumbers};
  }
  if (differs(comparison, is_position_in_data)) {
    return {"The position in the data differs: after a start, batches are taken again or left out.", kData};
  }
  if (only_differs(comparison, is_statistics)) {
    return {
        "Only statistics of the batches differ: the module runs in training mode outside the steps, as in an "
        "evaluation without eval().",
        kOwnState};
  }
  if (!has(comparison, is_random_state)) {
    return {
        "The checkpoints have no state of a random number generator. If the program draws random numbers (dropout, "
        "noise, a shuffled order), they begin anew with each start: save the generator's state, or seed by the step's "
        "number.",
        kRandomNumbers};
  }
  if (!has(comparison, is_optimizer_state)) {
    return {
        "The checkpoints have no state of an optimizer. If it is not plain SGD, its moments begin anew with each "
        "start: bind the optimizer that makes the steps.",
        kOptimizers};
  }
  return {
      "The random numbers are the same, the weights are not: the batches after a start are others (their order must "
      "follow from the step's number), or the program passes something from step to step that no checkpoint has (a "
      "hidden state, a replay buffer, a counter).",
      kData};
}

}  // namespace longhaul
