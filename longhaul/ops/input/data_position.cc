#include "longhaul/ops/input/data_position.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "longhaul/base/log.h"
#include "longhaul/base/mutex.h"

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
    throw InvalidArgumentError(
        fmt::format("data loader: the batch at position {} has {} components, but example 0 has {}", position,
                    batch.size(), expected.dtypes.size()));
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].dtype() == expected.dtypes[i] && expected.shapes[i].compatible_with(batch[i].shape())) continue;
    throw InvalidArgumentError(fmt::format(
        "data loader: component {} of the batch at position {} is {}{}, but according to example 0 it should be {}{}",
        i, position, dtype_name(batch[i].dtype()), batch[i].shape().to_string(), dtype_name(expected.dtypes[i]),
        expected.shapes[i].to_string()));
  }
}

// Takes batches of a loader, and counts how often it is asked for the same. Copies are one.
class BatchTaker {
 public:
  BatchTaker(std::string name, std::shared_ptr<DataLoader> loader, Signature signature)
      : name_(std::move(name)), loader_(std::move(loader)), signature_(std::move(signature)) {}

  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const {
    const auto at = inputs[0].item<int64_t>();
    Batch batch = loader_->at(at);
    check(batch, signature_, at);
    MutexLock lock(taken_->mutex);
    if (taken_->finds_others(at, loader_->stride())) {
      log_warning(
          "the position of input {} moves on by more than the batches that this program takes, last from {} to {}: "
          "replicas or threads share it, so some batches are trained twice and others never. Give each replica its own "
          "ops::load_batch() (a name of its own, and the loader's num_replicas and replica), and take steps in one "
          "thread",
          name_, taken_->position, at);
    }
    taken_->times = taken_->position == at ? taken_->times + 1 : 1;
    taken_->position = at;
    return batch;
  }
  LoadedInput use(std::string name) const {
    MutexLock lock(taken_->mutex);
    return {std::move(name), taken_->position, taken_->times};
  }

 private:
  struct Taken {
    Mutex mutex;
    int64_t position GUARDED_BY(mutex) = -1, times GUARDED_BY(mutex) = 0;
    int jumps GUARDED_BY(mutex) = 0;  // among the last kTakes; -1: it was said
    int takes GUARDED_BY(mutex) = 0;

    // Whoever takes each batch alone finds the position a batch further each time, but for a restore or a rollback.
    // True, once: somebody else takes batches, too.
    bool finds_others(int64_t at, int64_t stride) REQUIRES(mutex) {
      constexpr int kTakes = 20, kJumps = 4;
      if (jumps < 0) return false;
      if (position >= 0 && at > position + stride) ++jumps;
      if (jumps == kJumps) {
        jumps = -1;
        return true;
      }
      if (++takes == kTakes) jumps = takes = 0;
      return false;
    }
  };

  std::string name_;
  std::shared_ptr<DataLoader> loader_;
  Signature signature_;
  std::shared_ptr<Taken> taken_ = std::make_shared<Taken>();
};

const BatchTaker* batch_taker(const Operation& op) {
  if (op.type() != "HostFunction") return nullptr;
  const auto* function = op.find_attr<std::shared_ptr<HostFunction>>("function");
  return function != nullptr && *function ? (*function)->target<BatchTaker>() : nullptr;
}

std::string position_of(const Operation& op) {
  const Operation input = op.inputs()[0].op();
  return input.type() == "Identity" ? input.inputs()[0].op().name() : input.name();
}

Attrs facts_of(const DataLoader& loader) {
  const DataLoaderOptions& options = loader.options();
  return {{input_fact_attr("num_examples"), loader.dataset().size()},
          {input_fact_attr("batch_size"), options.batch_size},
          {input_fact_attr("shuffle"), options.shuffle},
          {input_fact_attr("seed"), options.seed},
          {input_fact_attr("num_replicas"), options.num_replicas}};
}

std::optional<std::string> fact_of(const Operation& op, const std::string& attr) {
  if (const auto* number = op.find_attr<int64_t>(attr)) return std::to_string(*number);
  if (const auto* flag = op.find_attr<bool>(attr)) return *flag ? "true" : "false";
  return std::nullopt;
}

constexpr std::string_view kFactPrefix = "input ";

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

LoadedBatch load_batch(const Scope& scope, const MaybeOwned<DataLoader>& loader, std::string_view name) {
  const Variable position = position_variable(scope, name);
  const Scope inner = scope.within(name);
  const Signature signature = signature_of(*loader.pointer());
  Attrs attrs = facts_of(*loader.pointer());
  attrs["function"] =
      std::make_shared<HostFunction>(BatchTaker(position.ref().op().name(), loader.pointer(), signature));
  attrs["dtypes"] = signature.dtypes;
  attrs["shapes"] = signature.shapes;
  attrs["takes_input"] = true;
  const Operation batch = inner.add("HostFunction", "batch", {position}, attrs);
  std::vector<Output> components;
  for (int i = 0; i < batch.num_outputs(); ++i) components.push_back(batch.output(i));
  return {position, components, advance(inner, position, loader.pointer()->stride())};
}

std::vector<LoadedInput> loaded_inputs(const Graph& graph) {
  std::vector<LoadedInput> inputs;
  for (const Operation& op : graph.operations()) {
    if (const BatchTaker* taker = batch_taker(op)) inputs.push_back(taker->use(position_of(op)));
  }
  return inputs;
}

std::string input_fact_attr(std::string_view fact) {
  return fmt::format("_input_{}", fact);
}

bool is_input_fact(std::string_view name) {
  return name.starts_with(kFactPrefix);
}

std::map<std::string, std::string> input_facts(const Graph& graph) {
  std::map<std::string, std::string> facts;
  for (const Operation& op : graph.operations()) {
    const bool is_order = op.type() == "ExampleOrder";
    if ((!is_order && op.type() != "HostFunction") || op.inputs().empty()) continue;
    for (const char* fact : kInputFacts) {
      const auto value = fact_of(op, is_order ? fact : input_fact_attr(fact));
      if (value) facts[fmt::format("{}{} {}", kFactPrefix, position_of(op), fact)] = *value;
    }
  }
  return facts;
}

}  // namespace longhaul::ops
