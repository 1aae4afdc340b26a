#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "longhaul/ops/state_ops.h"

namespace longhaul {

// A value that lives in the program, and how a graph gets at it. The functions are called on any thread that runs the
// session, one call at a time for a run but several runs at once, and `read` also at the moment of a snapshot: they
// must be short, and must not run the session.
struct ExternalValue {
  DType dtype = kFloat;
  Shape shape;  // what is known of it
  // Where `shape` leaves it open, the shape that the value is going to have: for the size of checkpoints
  // (Saver::bytes()), and for nothing else.
  std::optional<Shape> expected = {};

  // The value as it is. What is returned must not change afterwards: a copy, where the program goes on writing.
  std::function<Tensor()> read;
  // Takes a value of the dtype and of a shape that is compatible with `shape`.
  std::function<void(const Tensor&)> assign;
  // What the initializer assigns. Left out: what `read` returns, so the value stays as the program has made it.
  std::function<Tensor()> initial;
};

// The attribute of the variable that says it.
inline constexpr const char* kExpectedShapeAttr = "_expected_shape";

namespace ops {

// A variable whose value the program keeps itself: a counter, a generator's state, a tensor of another library. It is
// read, saved, restored and initialised as any variable is. It is changed by Assign and by the program alone; an
// operation that adds to it or trains it is an InvalidArgumentError when it runs.
//
//   int64_t epoch = 0;
//   ops::external_variable(root, "epoch", {.dtype = kInt64,
//                                         .read = [&] { return Tensor::scalar(epoch); },
//                                         .assign = [&](const Tensor& value) { epoch = value.item<int64_t>(); }});
//
// All sessions of the graph share the value; each of them has to initialise or to restore the variable before it reads
// it. A snapshot has the program's values and the variables of one moment where the program changes its values only
// inside of operations that write variables. AlreadyExistsError: the name is taken in this scope.
Variable external_variable(const Scope& scope, std::string_view name, ExternalValue value, bool trainable = false);

// A value of the program that savers save with the variables (those without a var_list), and that a checkpoint may
// lack: `assign` is then called with a tensor of shape [0]. In checkpoints it is called `key`; left out: by its name in
// the graph. It is in no collection of variables, and needs no initializer. A restore calls `check` before it changes
// anything, with what the checkpoint has; it throws if that cannot be restored.
void optional_program_value(const Scope& scope, std::string_view name, ExternalValue value, std::string key = "",
                            std::function<void(const Tensor&)> check = nullptr);

// A training step that is a function of the program. It is called with the global step before it and with the values of
// `inputs`, inside the gate that snapshots wait at; the global step is then one more. Nothing of it counts if the
// function throws: what it has changed of the program's values it must put back, or refuse to read. One thread at a
// time may run the operation. The function may wait; a snapshot that is due then waits with it, for a minute at most.
using ProgramStep = std::function<void(int64_t step, const std::vector<Tensor>& inputs)>;
Operation program_step(const Scope& scope, const Variable& global_step, const std::vector<Output>& inputs,
                       ProgramStep function, std::string_view name = "step");

}  // namespace ops
}  // namespace longhaul
