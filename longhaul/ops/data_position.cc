#include "longhaul/ops/data_position.h"

#include <fmt/format.h>

#include <memory>

namespace longhaul::ops {
namespace {

Variable position_variable(const Scope& scope, std::string_view name) {
  return variable(scope, name, Tensor::scalar<int64_t>(0), {.trainable = false});
}

Operation advance(const Scope& scope, const Variable& position, int64_t by) {
  return assign_add(scope, position, constant(scope, by, "stride"), "advance").op();
}

// What a batch of the loader is like, by its first example.
struct Signature {
  std::vector<DType> dtypes;
  std::vector<Shape> shapes;
};

Signature signature_of(const DataLoader& loader) {
  Signature signature;
  for (const Tensor& component : loader.dataset().get(0)) {
    std::vector<int64_t> dims{loader.options().drop_remainder ? loader.options().batch_size : -1};
    dims.insert(dims.end(), component.shape().dims().begin(), component.shape().dims().end());
    signature.dtypes.push_back(component.dtype());
    signature.shapes.emplace_back(std::move(dims));
  }
  return signature;
}

void check(const Batch& batch, const Signature& expected, int64_t position) {
  if (batch.size() != expected.dtypes.size()) {
    throw InvalidArgumentError(fmt::format("data loader: the batch at position {} has {} components, but example 0 {}",
                                           position, batch.size(), expected.dtypes.size()));
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].dtype() == expected.dtypes[i] && expected.shapes[i].compatible_with(batch[i].shape())) continue;
    throw InvalidArgumentError(
        fmt::format("data loader: component {} of the batch at position {} is {}{}, but by example 0 it should be {}{}",
                    i, position, dtype_name(batch[i].dtype()), batch[i].shape().to_string(),
                    dtype_name(expected.dtypes[i]), expected.shapes[i].to_string()));
  }
}

}  // namespace

DataPosition data_position(const Scope& scope, const DataPositionOptions& options, std::string_view name) {
  const Variable position = position_variable(scope, name);
  const Scope inner = scope.within(name);
  const Output indices = inner
                             .add("ExampleOrder", "indices", {position},
                                  {{"num_examples", options.num_examples},
                                   {"batch_size", options.batch_size},
                                   {"num_epochs", options.num_epochs},
                                   {"shuffle", options.shuffle},
                                   {"seed", options.seed},
                                   {"num_replicas", options.num_replicas},
                                   {"replica", options.replica}})
                             .output();
  return {position, indices, advance(inner, position, options.batch_size * options.num_replicas)};
}

LoadedBatch load_batch(const Scope& scope, const Lent<DataLoader>& loader, std::string_view name) {
  const Variable position = position_variable(scope, name);
  const Scope inner = scope.within(name);
  const Signature signature = signature_of(*loader.pointer());
  const auto load = [loader = loader.pointer(), signature](const std::vector<Tensor>& inputs) {
    const auto at = inputs[0].item<int64_t>();
    Batch batch = loader->at(at);
    check(batch, signature, at);
    return batch;
  };
  const Operation batch = inner.add("HostFunction", "batch", {position},
                                    {{"function", std::make_shared<HostFunction>(load)},
                                     {"dtypes", signature.dtypes},
                                     {"shapes", signature.shapes},
                                     {"takes_input", true}});
  std::vector<Output> components;
  for (int i = 0; i < batch.num_outputs(); ++i) components.push_back(batch.output(i));
  return {position, components, advance(inner, position, loader.pointer()->stride())};
}

}  // namespace longhaul::ops
