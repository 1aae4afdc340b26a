#include "longhaul/host/accumulators/accumulator.h"
#include "longhaul/host/accumulators/worker_gradients.h"
#include "longhaul/host/kernels/attr_or.h"
#include "longhaul/host/kernels/named_errors.h"

namespace longhaul {
namespace {

std::shared_ptr<Resource> make_accumulator(const Operation& handle,
                                           std::unique_ptr<GradientSum> (*make)(GradientSpec)) {
  const std::string shared_name = attr_or(handle, "shared_name", std::string());
  const GradientSpec spec = gradient_spec(handle);
  return std::make_shared<Accumulator>(shared_name.empty() ? handle.name() : shared_name, spec, make(spec));
}

std::shared_ptr<Resource> make_dense_accumulator(const Operation& handle) {
  return make_accumulator(handle, make_dense_sum);
}

std::shared_ptr<Resource> make_row_accumulator(const Operation& handle) {
  return make_accumulator(handle, make_row_sum);
}

// Inputs: the accumulator, the worker's step, and the tensors of the gradient. The attr is Longhaul's own: who counts.
void apply_gradient(HostCall& call) {
  const auto local_step = call.inputs[1].item<int64_t>();
  const auto* worker = call.op.find_attr<std::string>("_worker");
  const auto applied =
      call.resource<Accumulator>().apply(local_step, call.inputs.subspan(2), worker == nullptr ? "" : *worker,
                                         call.clock == nullptr ? Clock::real() : *call.clock);
  if (worker != nullptr) worker_gradients(call.own)->add(*worker, local_step, applied);
}

Seconds seconds_of(const Operation& op, const char* milliseconds) {
  return std::chrono::milliseconds(attr_or<int64_t>(op, milliseconds, 0));
}

// The attrs are Longhaul's own, too.
TakeWait wait_of(const HostCall& call) {
  TakeWait wait{.min_required = static_cast<int32_t>(attr_or<int64_t>(call.op, "_min_required", 0)),
                .wait_secs = seconds_of(call.op, "_wait_ms"),
                .warn_secs = seconds_of(call.op, "_warn_ms")};
  if (call.clock != nullptr) wait.clock = call.clock;
  return wait;
}

void take_gradient(HostCall& call) {
  call.results = call.resource<Accumulator>().take(call.inputs[1].item<int32_t>(), call.limits, wait_of(call));
}

void set_accumulator_step(HostCall& call) {
  call.resource<Accumulator>().set_global_step(call.inputs[1].item<int64_t>());
}

void cancel_takes(HostCall& call) {
  call.resource<Accumulator>().cancel_takes();
}

void num_accumulated(HostCall& call) {
  call.results.push_back(Tensor::scalar(call.resource<Accumulator>().num_accumulated()));
}

void num_dropped(HostCall& call) {
  call.results.push_back(Tensor::scalar(call.resource<Accumulator>().num_dropped()));
}

}  // namespace

HostKernelTable accumulator_host_kernels() {
  return {{{"AccumulatorApplyGradient", named_errors<apply_gradient>},
           {"SparseAccumulatorApplyGradient", named_errors<apply_gradient>},
           {"AccumulatorTakeGradient", named_errors<take_gradient>},
           {"SparseAccumulatorTakeGradient", named_errors<take_gradient>},
           {"AccumulatorSetGlobalStep", named_errors<set_accumulator_step>},
           {"AccumulatorCancelTakes", cancel_takes},
           {"AccumulatorNumAccumulated", num_accumulated},
           {"AccumulatorNumDropped", num_dropped}},
          {{"ConditionalAccumulator", make_dense_accumulator}, {"SparseConditionalAccumulator", make_row_accumulator}}};
}

}  // namespace longhaul
