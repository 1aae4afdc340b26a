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
  const auto applied = call.resource<Accumulator>().apply(local_step, call.inputs.subspan(2));
  const auto* worker = call.op.find_attr<std::string>("_worker");
  if (worker != nullptr) worker_gradients(call.own)->add(*worker, local_step, applied);
}

void take_gradient(HostCall& call) {
  call.results = call.resource<Accumulator>().take(call.inputs[1].item<int32_t>(), call.limits);
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
