#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "longhaul/ops/state_ops.h"

namespace longhaul {

// A value that lives in the program, with the functions by which a graph accesses it. They are called on any thread
// that runs the session, one at a time within a run, but concurrently in several runs. `read` is also called during a
// snapshot. They must be short, and must not run the session.
struct ExternalValue {
  DType dtype = kFloat;
  Shape shape{};  // as far as known
  // The future shape of the value, if `shape` leaves it open. Used only for the size of checkpoints (Saver::bytes()).
  std::optional<Shape> expected{};

  // Returns the current value. The returned tensor must not change afterwards, so return a copy if the program writes
  // to the value.
  std::function<Tensor()> read{};
  // Sets the value. The tensor has the dtype, and a shape compatible with `shape`.
  std::function<void(const Tensor&)> assign{};
  // Returns the value that the initializer assigns. Empty: `read` is used, so the program's own initial value stays.
  std::function<Tensor()> initial{};
};

// The variable's attribute for `expected`.
inline constexpr const char* kExpectedShapeAttr = "_expected_shape";

namespace ops {

// A variable whose value the program keeps itself: a counter, a generator's state, a tensor of another library. It is
// read, saved, restored and initialised like any variable, but only Assign and the program change it. An operation that
// adds to it or trains it fails with InvalidArgumentError when it runs.
//
//   int64_t epoch = 0;
//   ops::external_variable(root, "epoch", {.dtype = kInt64,
//                                         .read = [&] { return Tensor::scalar(epoch); },
//                                         .assign = [&](const Tensor& value) { epoch = value.item<int64_t>(); }});
//
// All sessions of the graph share the value. Each of them must initialise or restore the variable before reading it. In
// a snapshot, the program's values are consistent with the variables if the program changes them only inside operations
// that write variables. AlreadyExistsError: the name is taken in this scope.
Variable external_variable(const Scope& scope, std::string_view name, ExternalValue value, bool trainable = false);

// Adds a value of the program that savers without a var_list save with the variables. A checkpoint may lack it, so a
// program can add one to a training run that has checkpoints already:
//
//   double best = 0;
//   ops::optional_program_value(root, "best",
//                               {.dtype = kDouble,
//                                .shape = Shape::unknown_rank(),
//                                .read = [&] { return Tensor::scalar(best); },
//                                .assign = [&](const Tensor& saved) {
//                                  if (saved.num_elements() == 1) best = saved.item<double>();
//                                }});
//
// A restore from a checkpoint without the value logs a warning, and calls `assign` with a tensor of shape [0], which
// `shape` must allow. The value's name in checkpoints is `key`, by default its name in the graph. It is in no
// collection of variables and needs no initializer. A restore calls `check` with the checkpoint's value before it
// changes anything; `check` must throw if that value cannot be restored.
void optional_program_value(const Scope& scope, std::string_view name, ExternalValue value, std::string key = "",
                            std::function<void(const Tensor&)> check = nullptr);

// Whether the value of a VariableV2 operation lives in the program.
bool is_external(const Operation& variable);

// A training step that is a function of the program. The function is called with the global step before this step and
// the values of `inputs`, inside the gate, where snapshots wait for it. Then the global step is incremented. If the
// function throws, the step does not count: the function must undo its changes to the program's values, or later reads
// of them must fail. One thread at a time may run the operation. The function may wait; a snapshot that is due then
// waits too, for at most a minute.
using ProgramStep = std::function<void(int64_t step, const std::vector<Tensor>& inputs)>;
Operation program_step(const Scope& scope, const Variable& global_step, const std::vector<Output>& inputs,
                       ProgramStep function, std::string_view name = "step");
bool is_program_step(const Operation& op);
bool has_program_step(const Graph& graph);

}  // namespace ops
}  // namespace longhaul
