#include "longhaul/ops/input/queue_ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/ops/state_ops.h"

namespace longhaul {
namespace {

// A seed for an operation, as two numbers: of the graph, and of the operation. 0, 0: none.
std::pair<int64_t, int64_t> seeds_of(const Graph& graph, std::optional<int64_t> seed) {
  constexpr int64_t kGraphSeed = 87654321;  // where only the operation has one
  if (graph.seed() == 0 && !seed) return {0, 0};
  const int64_t first = graph.seed() == 0 ? kGraphSeed : static_cast<int64_t>(graph.seed());
  return {first, seed.value_or(graph.num_operations())};
}

Attrs shuffle_attrs(const Scope& scope, int32_t min_after_dequeue, std::optional<int64_t> seed) {
  const auto [first, second] = seeds_of(scope.graph(), seed);
  return {{"min_after_dequeue", int64_t{min_after_dequeue}}, {"seed", first}, {"seed2", second}};
}

Operation checked(Operation handle) {
  const auto& types = queue_types();
  if (std::find(types.begin(), types.end(), handle.type()) == types.end()) {
    throw InvalidArgumentError(fmt::format("{} ({}) is not a queue", handle.name(), handle.type()));
  }
  return handle;
}

std::string name_or(std::string_view name, const std::string& default_name) {
  return name.empty() ? default_name : std::string(name);
}

Output count(const Scope& scope, int32_t n) {
  return ops::constant(scope, Tensor::scalar(n), "n");
}

}  // namespace

QueueBase::QueueBase(Operation handle, std::vector<std::string> names)
    : handle_(checked(handle)), signature_(queue_signature(handle_)), names_(std::move(names)) {
  if (!names_.empty() && names_.size() != signature_.dtypes.size()) {
    throw InvalidArgumentError(fmt::format("{}: {} names were given for {} components", handle_.name(), names_.size(),
                                           signature_.dtypes.size()));
  }
}

QueueBase::QueueBase(const Scope& scope, const std::string& type, const std::string& default_name,
                     const std::vector<DType>& dtypes, int32_t capacity, const QueueOptions& options, Attrs more)
    : QueueBase(
          [&] {
            more.insert({{"component_types", dtypes},
                         {"shapes", options.shapes},
                         {"capacity", int64_t{capacity}},
                         {"container", std::string()},
                         {"shared_name", options.shared_name}});
            return scope.add(type, name_or(options.name, default_name), {}, std::move(more));
          }(),
          options.names) {}

std::string QueueBase::own_name() const {
  return name().substr(name().rfind('/') + 1);
}

Operation QueueBase::add_enqueue(const Scope& scope, const std::string& type, const std::vector<Output>& components,
                                 const std::string& name) const {
  std::vector<Output> inputs{handle()};
  inputs.insert(inputs.end(), components.begin(), components.end());
  return scope.add(type, name, std::move(inputs), {{"Tcomponents", dtypes()}, {"timeout_ms", int64_t{-1}}});
}

Operation QueueBase::enqueue(const Scope& scope, const std::vector<Output>& components, std::string_view name) const {
  return add_enqueue(scope, "QueueEnqueueV2", components, name_or(name, own_name() + "_enqueue"));
}

Operation QueueBase::enqueue_many(const Scope& scope, const std::vector<Output>& components,
                                  std::string_view name) const {
  return add_enqueue(scope, "QueueEnqueueManyV2", components, name_or(name, own_name() + "_EnqueueMany"));
}

std::vector<Output> QueueBase::add_dequeue(const Scope& scope, const std::string& type, std::vector<Output> inputs,
                                           const std::string& name) const {
  const Operation op =
      scope.add(type, name, std::move(inputs), {{"component_types", dtypes()}, {"timeout_ms", int64_t{-1}}});
  std::vector<Output> components;
  for (int i = 0; i < op.num_outputs(); ++i) components.push_back(op.output(i));
  return components;
}

std::vector<Output> QueueBase::dequeue(const Scope& scope, std::string_view name) const {
  return add_dequeue(scope, "QueueDequeueV2", {handle()}, name_or(name, own_name() + "_Dequeue"));
}

std::vector<Output> QueueBase::dequeue_many(const Scope& scope, const Output& n, std::string_view name) const {
  return add_dequeue(scope, "QueueDequeueManyV2", {handle(), n}, name_or(name, own_name() + "_DequeueMany"));
}

std::vector<Output> QueueBase::dequeue_many(const Scope& scope, int32_t n, std::string_view name) const {
  return dequeue_many(scope, count(scope, n), name);
}

std::vector<Output> QueueBase::dequeue_up_to(const Scope& scope, const Output& n, std::string_view name) const {
  return add_dequeue(scope, "QueueDequeueUpToV2", {handle(), n}, name_or(name, own_name() + "_DequeueUpTo"));
}

std::vector<Output> QueueBase::dequeue_up_to(const Scope& scope, int32_t n, std::string_view name) const {
  return dequeue_up_to(scope, count(scope, n), name);
}

Operation QueueBase::close(const Scope& scope, bool cancel_pending_enqueues, std::string_view name) const {
  return scope.add("QueueCloseV2", name_or(name, own_name() + "_Close"), {handle()},
                   {{"cancel_pending_enqueues", cancel_pending_enqueues}});
}

Output QueueBase::is_closed(const Scope& scope, std::string_view name) const {
  return scope.add("QueueIsClosedV2", name_or(name, own_name() + "_Is_Closed"), {handle()}).output();
}

Output QueueBase::size(const Scope& scope, std::string_view name) const {
  return scope.add("QueueSizeV2", name_or(name, own_name() + "_Size"), {handle()}).output();
}

std::vector<Output> QueueBase::ordered(const std::map<std::string, Output>& components) const {
  std::vector<Output> in_order;
  for (const std::string& name : names_) {
    const auto it = components.find(name);
    if (it == components.end())
      throw InvalidArgumentError(fmt::format("{}: component '{}' is missing", this->name(), name));
    in_order.push_back(it->second);
  }
  if (components.size() != names_.size()) {
    throw InvalidArgumentError(fmt::format("{}: {} components were given, but the queue has {} names", name(),
                                           components.size(), names_.size()));
  }
  return in_order;
}

std::map<std::string, Output> QueueBase::named(const std::vector<Output>& components) const {
  if (components.size() != names_.size()) {
    throw InvalidArgumentError(fmt::format("{}: {} components were given, but the queue has {} names", name(),
                                           components.size(), names_.size()));
  }
  std::map<std::string, Output> by_name;
  for (size_t i = 0; i < names_.size(); ++i) by_name[names_[i]] = components[i];
  return by_name;
}

FIFOQueue::FIFOQueue(const Scope& scope, int32_t capacity, const std::vector<DType>& dtypes,
                     const QueueOptions& options)
    : QueueBase(scope, "FIFOQueueV2", "fifo_queue", dtypes, capacity, options) {}

PaddingFIFOQueue::PaddingFIFOQueue(const Scope& scope, int32_t capacity, const std::vector<DType>& dtypes,
                                   const QueueOptions& options)
    : QueueBase(scope, "PaddingFIFOQueueV2", "padding_fifo_queue", dtypes, capacity, options) {}

RandomShuffleQueue::RandomShuffleQueue(const Scope& scope, int32_t capacity, int32_t min_after_dequeue,
                                       const std::vector<DType>& dtypes, const QueueOptions& options,
                                       std::optional<int64_t> seed)
    : QueueBase(scope, "RandomShuffleQueueV2", "random_shuffle_queue", dtypes, capacity, options,
                shuffle_attrs(scope, min_after_dequeue, seed)) {}

PriorityQueue::PriorityQueue(const Scope& scope, int32_t capacity, const std::vector<DType>& dtypes,
                             const QueueOptions& options)
    : QueueBase(scope, "PriorityQueueV2", "priority_queue", dtypes, capacity, options) {}

}  // namespace longhaul
