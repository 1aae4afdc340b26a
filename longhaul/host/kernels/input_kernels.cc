#include <fmt/format.h>

#include <algorithm>

#include "longhaul/host/example_order.h"
#include "longhaul/host/host_kernel.h"

namespace longhaul {
namespace {

void check_position(const HostCall& call, int64_t position, int64_t num_examples, int64_t batch_size) {
  const auto num_epochs = call.op.attr<int64_t>("num_epochs");
  if (position < 0) throw InvalidArgumentError(fmt::format("{}: position {}", call.op.name(), position));
  if (num_epochs > 0 && position > num_epochs * num_examples - batch_size) {
    throw OutOfRangeError(
        fmt::format("{}: the {} epochs of {} examples have ended", call.op.name(), num_epochs, num_examples));
  }
}

void example_order(HostCall& call) {
  const auto position = call.inputs[0].item<int64_t>();
  const auto num_examples = call.op.attr<int64_t>("num_examples");
  const auto batch_size = call.op.attr<int64_t>("batch_size");
  check_position(call, position, num_examples, batch_size);
  const ExampleOrder order(num_examples, static_cast<uint64_t>(call.op.attr<int64_t>("seed")));
  const bool shuffle = call.op.attr<bool>("shuffle");
  Tensor indices(kInt64, {batch_size});
  for (int64_t i = 0; i < batch_size; ++i) {
    indices.mutable_flat<int64_t>()[static_cast<size_t>(i)] =
        shuffle ? order.at(position + i) : (position + i) % num_examples;
  }
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
