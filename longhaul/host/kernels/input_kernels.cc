#include <fmt/format.h>

#include <algorithm>

#include "longhaul/data/batch_order.h"
#include "longhaul/host/kernels/host_kernel.h"

namespace longhaul {
namespace {

BatchOrder order_of(const Operation& op) {
  return BatchOrder({.num_examples = op.attr<int64_t>("num_examples"),
                     .batch_size = op.attr<int64_t>("batch_size"),
                     .seed = op.attr<int64_t>("seed"),
                     .shuffle = op.attr<bool>("shuffle"),
                     .num_epochs = op.attr<int64_t>("num_epochs"),
                     .num_replicas = op.attr<int64_t>("num_replicas"),
                     .replica = op.attr<int64_t>("replica")});
}

void example_order(HostCall& call) {
  const auto position = call.inputs[0].item<int64_t>();
  const BatchOrder order = order_of(call.op);
  order.check(position, call.op.name());
  Tensor indices(kInt64, {order.size_at(position)});
  order.fill(position, indices.mutable_flat<int64_t>());
  call.results.push_back(std::move(indices));
}

void fraction_full(HostCall& call) {
  const int64_t counted = std::max<int64_t>(0, call.inputs[0].item<int64_t>() - call.op.attr<int64_t>("above"));
  call.results.push_back(
      Tensor::scalar(static_cast<float>(counted) / static_cast<float>(call.op.attr<int64_t>("range"))));
}

void require_elements(HostCall& call) {
  if (call.inputs[0].num_elements() == 0) {
    throw InvalidArgumentError(call.op.name() + ": " + call.op.attr<std::string>("message"));
  }
  call.results.push_back(call.inputs[0]);
}

}  // namespace

HostKernelTable input_host_kernels() {
  return {{{"ExampleOrder", example_order}, {"FractionFull", fraction_full}, {"RequireElements", require_elements}},
          {}};
}

}  // namespace longhaul
