#include "longhaul/ops/training/accumulators.h"

#include <fmt/format.h>

#include "longhaul/ops/math_ops.h"
#include "longhaul/ops/state_ops.h"

namespace longhaul {
namespace {

Output as_int64(const Scope& scope, const Output& value) {
  return value.dtype() == kInt64 ? value : ops::cast(scope, value, kInt64, "to_int64");
}

Attrs apply_attrs(DType dtype, const std::string& worker) {
  Attrs attrs{{"dtype", dtype}};
  if (!worker.empty()) attrs.emplace("_worker", worker);
  return attrs;
}

int64_t milliseconds(Seconds time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

Attrs take_attrs(DType dtype, const TakeOptions& options) {
  Attrs attrs{{"dtype", dtype}};
  if (options.min_required > 0) attrs.emplace("_min_required", int64_t{options.min_required});
  if (options.wait_secs.count() > 0) attrs.emplace("_wait_ms", milliseconds(options.wait_secs));
  if (options.warn_secs.count() > 0) attrs.emplace("_warn_ms", milliseconds(options.warn_secs));
  return attrs;
}

Output count_needed(const Scope& scope, int32_t num_required) {
  return ops::constant(scope, num_required, "num_required");
}

}  // namespace

AccumulatorBase::AccumulatorBase(const Scope& scope, const std::string& type, const std::string& default_name,
                                 DType dtype, const AccumulatorOptions& options)
    : handle_(scope.add(type, options.name.empty() ? default_name : options.name, {},
                        {{"dtype", dtype},
                         {"shape", options.shape},
                         {"container", std::string()},
                         {"shared_name", options.shared_name},
                         {"reduction_type", std::string(options.sum ? "SUM" : "MEAN")}})) {}

std::string AccumulatorBase::own_name() const {
  return name().substr(name().rfind('/') + 1);
}

std::string AccumulatorBase::name_or(std::string_view name, const char* suffix) const {
  return name.empty() ? own_name() + suffix : std::string(name);
}

Operation AccumulatorBase::set_global_step(const Scope& scope, const Output& step, std::string_view name) const {
  return scope.add("AccumulatorSetGlobalStep", name, {handle(), as_int64(scope, step)});
}

Output AccumulatorBase::num_accumulated(const Scope& scope, std::string_view name) const {
  return scope.add("AccumulatorNumAccumulated", name_or(name, "_NumAccumulated"), {handle()}).output();
}

Output AccumulatorBase::num_dropped(const Scope& scope, std::string_view name) const {
  return scope.add("AccumulatorNumDropped", name_or(name, "_NumDropped"), {handle()}).output();
}

Operation AccumulatorBase::cancel_takes(const Scope& scope, std::string_view name) const {
  return scope.add("AccumulatorCancelTakes", name_or(name, "_CancelTakes"), {handle()});
}

ConditionalAccumulator::ConditionalAccumulator(const Scope& scope, DType dtype, const AccumulatorOptions& options)
    : AccumulatorBase(scope, "ConditionalAccumulator", "conditional_accumulator", dtype, options) {}

Operation ConditionalAccumulator::apply_grad(const Scope& scope, const Output& gradient, const Output& local_step,
                                             const std::string& worker, std::string_view name) const {
  return scope.add("AccumulatorApplyGradient", name_or(name, "_ApplyGradient"),
                   {handle(), as_int64(scope, local_step), gradient}, apply_attrs(dtype(), worker));
}

Output ConditionalAccumulator::take_grad(const Scope& scope, int32_t num_required, std::string_view name,
                                         const TakeOptions& options) const {
  const Output count = count_needed(scope, num_required);
  return scope
      .add("AccumulatorTakeGradient", name_or(name, "_TakeGradient"), {handle(), count}, take_attrs(dtype(), options))
      .output();
}

SparseConditionalAccumulator::SparseConditionalAccumulator(const Scope& scope, DType dtype,
                                                           const AccumulatorOptions& options)
    : AccumulatorBase(scope, "SparseConditionalAccumulator", "sparse_conditional_accumulator", dtype, options) {}

// The shape of the table is the accumulator's own, so none goes with the gradient.
Operation SparseConditionalAccumulator::apply_indexed_slices_grad(const Scope& scope, const IndexedSlices& gradient,
                                                                  const Output& local_step, const std::string& worker,
                                                                  std::string_view name) const {
  Attrs attrs = apply_attrs(dtype(), worker);
  attrs.emplace("has_known_shape", false);
  const Output no_shape = ops::constant(scope, Tensor(kInt64, Shape{0}), "gradient_shape");
  return scope.add(
      "SparseAccumulatorApplyGradient", name_or(name, "_ApplyGradient"),
      {handle(), as_int64(scope, local_step), as_int64(scope, gradient.indices), gradient.values, no_shape},
      std::move(attrs));
}

IndexedSlices SparseConditionalAccumulator::take_indexed_slices_grad(const Scope& scope, int32_t num_required,
                                                                     std::string_view name,
                                                                     const TakeOptions& options) const {
  const Shape& table = handle().op().attr<Shape>("shape");
  if (!table.has_rank() || table.rank() == 0 || table.dim(0) < 0) {
    throw InvalidArgumentError(fmt::format(
        "{}: rows are taken for a table with a known number of rows, but its shape is {}: give it in the options",
        this->name(), table.to_string()));
  }
  const Operation taken = scope.add("SparseAccumulatorTakeGradient", name_or(name, "_TakeGradient"),
                                    {handle(), count_needed(scope, num_required)}, take_attrs(dtype(), options));
  return {.values = taken.output(1),
          .indices = taken.output(0),
          .num_rows = ops::constant(scope, table.dim(0), "num_rows")};
}

}  // namespace longhaul
