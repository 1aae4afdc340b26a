#pragma once

#include <string>
#include <string_view>

#include "longhaul/base/clock.h"
#include "longhaul/graph/scope.h"
#include "longhaul/ops/indexed_slices.h"

namespace longhaul {

struct AccumulatorOptions {
  Shape shape = Shape::unknown_rank();  // of the gradients; unknown: the first of each step decides
  bool sum = false;                     // take the sum, not the mean
  std::string shared_name{};            // under which other graphs on the same server find it; empty: its own name
  std::string name{};                   // of the handle; empty: "conditional_accumulator", ...
};

// How a take waits for gradients that do not come.
struct TakeOptions {
  int32_t min_required = 0;  // fewer will do, once these have waited for `wait_secs`; 0: never
  Seconds wait_secs{0};
  Seconds warn_secs{0};  // after that long, and then after pauses that double, a warning; 0: none
};

// Collects the gradients of several workers until there are enough for a step. The object is a handle and may be
// copied; the gradients live in the session, or on its server.
//
//   ConditionalAccumulator accumulator(root, kFloat, {.shape = w.shape()});
//   const Operation push = accumulator.apply_grad(root, gradient, local_step);   // each worker
//   const Output mean = accumulator.take_grad(root, 2);                          // waits for two
//
// An accumulator counts steps from 0; each take begins the next one. A gradient that was computed in an earlier step is
// dropped; the run that applies it succeeds all the same, and never waits. If the step is set to a smaller one, as when
// a chief has restored a checkpoint, gradients of the steps that this undoes are dropped too.
class AccumulatorBase {
 public:
  const std::string& name() const { return handle_.name(); }  // with scopes
  Output handle() const { return handle_.output(); }
  DType dtype() const { return handle_.attr<DType>("dtype"); }

  // `step`: an int64 scalar.
  Operation set_global_step(const Scope& scope, const Output& step, std::string_view name = "SetGlobalStep") const;
  Output num_accumulated(const Scope& scope, std::string_view name = "") const;  // int32; since the last take
  Output num_dropped(const Scope& scope, std::string_view name = "") const;      // int64; since it was created
  // Ends waiting takes with a CancelledError, and later ones too, until set_global_step() is run: for a stop.
  Operation cancel_takes(const Scope& scope, std::string_view name = "") const;

 protected:
  AccumulatorBase(const Scope& scope, const std::string& type, const std::string& default_name, DType dtype,
                  const AccumulatorOptions& options);
  std::string own_name() const;
  std::string name_or(std::string_view name, const char* suffix) const;

 private:
  Operation handle_;
};

// For gradients that are whole tensors. InvalidArgumentError: the dtype is not floating-point.
class ConditionalAccumulator : public AccumulatorBase {
 public:
  ConditionalAccumulator(const Scope& scope, DType dtype, const AccumulatorOptions& options = {});

  // InvalidArgumentError: the gradient has another dtype or shape ("Shape mismatch"); if its shape is not known when
  // the graph is built, the run throws. `worker`, if any, is counted and named in the log if its gradients are dropped.
  Operation apply_grad(const Scope& scope, const Output& gradient, const Output& local_step,
                       const std::string& worker = "", std::string_view name = "") const;
  // The mean, or sum, of all gradients of the step, once there are `num_required`. InvalidArgumentError when run:
  // num_required is not positive.
  Output take_grad(const Scope& scope, int32_t num_required, std::string_view name = "",
                   const TakeOptions& options = {}) const;
};

// For gradients of some rows. The mean of a row is over the gradients that have the row, so a row that one of two
// workers had keeps that worker's gradient.
class SparseConditionalAccumulator : public AccumulatorBase {
 public:
  SparseConditionalAccumulator(const Scope& scope, DType dtype, const AccumulatorOptions& options = {});

  Operation apply_indexed_slices_grad(const Scope& scope, const IndexedSlices& gradient, const Output& local_step,
                                      const std::string& worker = "", std::string_view name = "") const;
  // Each row once, in ascending order. `num_rows` is of the table. InvalidArgumentError: the accumulator's shape is
  // unknown, or has no rows.
  IndexedSlices take_indexed_slices_grad(const Scope& scope, int32_t num_required, std::string_view name = "",
                                         const TakeOptions& options = {}) const;
};

}  // namespace longhaul
