#include <fmt/format.h>

#include <algorithm>

#include "longhaul/graph/builtin/resolver.h"
#include "longhaul/graph/queue_signature.h"

namespace longhaul {
namespace {

constexpr char kPriorityQueue[] = "PriorityQueueV2";

}  // namespace

const std::vector<std::string>& queue_types() {
  static const auto* types =
      new std::vector<std::string>{"FIFOQueueV2", "PaddingFIFOQueueV2", kPriorityQueue, "RandomShuffleQueueV2"};
  return *types;
}

QueueSignature queue_signature(const Operation& handle) {
  QueueSignature signature{handle.attr<std::vector<DType>>("component_types"), {}};
  if (const auto* shapes = handle.find_attr<std::vector<Shape>>("shapes")) signature.shapes = *shapes;
  if (handle.type() != kPriorityQueue) return signature;
  signature.dtypes.insert(signature.dtypes.begin(), kInt64);
  if (!signature.shapes.empty() || signature.dtypes.size() == 1) {
    signature.shapes.insert(signature.shapes.begin(), Shape{});
  }
  return signature;
}

}  // namespace longhaul

namespace longhaul::builtin {
namespace {

void check_shapes(const OperationSpec& spec, bool sizes_may_differ) {
  const auto* shapes = find_attr<std::vector<Shape>>(spec, "shapes");
  if (shapes == nullptr || shapes->empty()) {
    if (sizes_may_differ) refuse(spec, "shapes must be provided");
    return;
  }
  const size_t components = need_attr<std::vector<DType>>(spec, "component_types").size();
  if (shapes->size() != components) {
    refuse(spec,
           fmt::format("Queue shapes must have the same length as dtypes: {} and {}", shapes->size(), components));
  }
  for (const Shape& shape : *shapes) {
    if (!shape.has_rank()) refuse(spec, "the shape of a component must have a known rank");
    if (!sizes_may_differ && !shape.fully_defined()) {
      refuse(spec, "All shapes must be fully defined: " + shape.to_string());
    }
  }
}

OpInfo make_queue(const OperationSpec& spec, bool sizes_may_differ, bool may_be_empty) {
  need_inputs(spec, 0);
  const auto& dtypes = need_attr<std::vector<DType>>(spec, "component_types");
  if (dtypes.empty() && !may_be_empty) refuse(spec, "an element must have at least one component");
  if (std::find(dtypes.begin(), dtypes.end(), kResource) != dtypes.end())
    refuse(spec, "a component cannot be a handle");
  const auto* capacity = find_attr<int64_t>(spec, "capacity");
  if (capacity != nullptr && *capacity == 0) refuse(spec, "capacity must be positive, or -1 for no limit");
  check_shapes(spec, sizes_may_differ);
  return resource_handle();
}

OpInfo resolve_fifo_queue(const OperationSpec& spec) {
  return make_queue(spec, /*sizes_may_differ=*/false, /*may_be_empty=*/false);
}

OpInfo resolve_padding_queue(const OperationSpec& spec) {
  return make_queue(spec, /*sizes_may_differ=*/true, /*may_be_empty=*/false);
}

OpInfo resolve_priority_queue(const OperationSpec& spec) {
  return make_queue(spec, /*sizes_may_differ=*/false, /*may_be_empty=*/true);
}

OpInfo resolve_shuffle_queue(const OperationSpec& spec) {
  const auto* least = find_attr<int64_t>(spec, "min_after_dequeue");
  const auto* capacity = find_attr<int64_t>(spec, "capacity");
  if (least != nullptr && *least < 0) refuse(spec, fmt::format("min_after_dequeue {} must be >= 0", *least));
  if (least != nullptr && capacity != nullptr && *capacity >= 0 && *least >= *capacity) {
    refuse(spec, fmt::format("min_after_dequeue {} must be < capacity {}", *least, *capacity));
  }
  return make_queue(spec, /*sizes_may_differ=*/false, /*may_be_empty=*/false);
}

QueueSignature signature_of_input(const OperationSpec& spec) {
  need_resource(spec, 0, queue_types(), "a queue");
  return queue_signature(spec.inputs[0].op());
}

// [?, 3] for [3].
Shape stacked(const Shape& shape, int64_t count) {
  if (!shape.has_rank()) return shape;
  std::vector<int64_t> dims{count};
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  return Shape(std::move(dims));
}

// Of component `i` of an element. A priority is a scalar also where no shapes are declared.
Shape element_shape(const OperationSpec& spec, const QueueSignature& queue, size_t i) {
  if (!queue.shapes.empty()) return queue.shapes[i];
  return i == 0 && spec.inputs[0].op().type() == kPriorityQueue ? Shape{} : Shape::unknown_rank();
}

OpInfo resolve_enqueue_components(const OperationSpec& spec, bool many) {
  const QueueSignature queue = signature_of_input(spec);
  if (spec.inputs.size() != queue.dtypes.size() + 1) {
    refuse(spec, fmt::format("Wrong number of components in tuple. Expected {}, got {}", queue.dtypes.size(),
                             spec.inputs.size() - 1));
  }
  for (size_t i = 0; i < queue.dtypes.size(); ++i) {
    const Output& given = spec.inputs[i + 1];
    if (given.dtype() != queue.dtypes[i]) {
      refuse(spec, fmt::format("Type mismatch in tuple component {}. Expected {}, got {}", i,
                               dtype_name(queue.dtypes[i]), dtype_name(given.dtype())));
    }
    const Shape element = element_shape(spec, queue, i);
    const Shape wanted = many ? stacked(element, -1) : element;
    if (!given.shape().compatible_with(wanted)) {
      refuse(spec, fmt::format("Shape mismatch in tuple component {}. Expected {}, got {}", i, wanted.to_string(),
                               given.shape().to_string()));
    }
    if (many && given.shape().has_rank() && given.shape().rank() == 0) {
      refuse(spec, fmt::format("component {} of enqueue_many is a scalar; it must have a row for each element", i));
    }
  }
  return {{}, kSideEffect | kMayWait, 1};
}

OpInfo resolve_enqueue(const OperationSpec& spec) {
  return resolve_enqueue_components(spec, /*many=*/false);
}

OpInfo resolve_enqueue_many(const OperationSpec& spec) {
  return resolve_enqueue_components(spec, /*many=*/true);
}

void check_component_types(const OperationSpec& spec, const QueueSignature& queue) {
  const auto* dtypes = find_attr<std::vector<DType>>(spec, "component_types");
  if (dtypes != nullptr && *dtypes != queue.dtypes) refuse(spec, "component_types differ from those of the queue");
}

OpInfo resolve_dequeue(const OperationSpec& spec) {
  need_inputs(spec, 1);
  const QueueSignature queue = signature_of_input(spec);
  check_component_types(spec, queue);
  OpInfo info{{}, kTakesInput | kMayWait, 1};
  for (size_t i = 0; i < queue.dtypes.size(); ++i) {
    info.outputs.push_back({queue.dtypes[i], element_shape(spec, queue, i)});
  }
  return info;
}

// -1: only known in a run.
int64_t known_count(const OperationSpec& spec) {
  const Operation op = spec.inputs[1].op();
  if (op.type() != "Const") return -1;
  const auto count = op.attr<Tensor>("value").item<int64_t>();
  if (count < 0) refuse(spec, fmt::format("DequeueMany requested {} < 0 elements", count));
  return count;
}

OpInfo resolve_dequeue_count(const OperationSpec& spec, int64_t count) {
  const QueueSignature queue = signature_of_input(spec);
  check_component_types(spec, queue);
  if (queue.shapes.empty()) {
    refuse(spec, "DequeueMany and DequeueUpTo require the components to have specified shapes.");
  }
  OpInfo info{{}, kTakesInput | kMayWait, 1};
  for (size_t i = 0; i < queue.dtypes.size(); ++i) {
    info.outputs.push_back({queue.dtypes[i], stacked(queue.shapes[i], count)});
  }
  return info;
}

void need_count(const OperationSpec& spec) {
  need_inputs(spec, 2);
  need_dtype(spec, 1, kInt32);
  if (!spec.inputs[1].shape().compatible_with(Shape{})) refuse(spec, "the number of elements must be a scalar");
}

OpInfo resolve_dequeue_many(const OperationSpec& spec) {
  need_count(spec);
  return resolve_dequeue_count(spec, known_count(spec));
}

OpInfo resolve_dequeue_up_to(const OperationSpec& spec) {
  need_count(spec);
  known_count(spec);
  return resolve_dequeue_count(spec, -1);
}

OpInfo resolve_close(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_resource(spec, 0, queue_types(), "a queue");
  find_attr<bool>(spec, "cancel_pending_enqueues");
  return {{}, kSideEffect, 1};
}

OpInfo resolve_queue_size(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_resource(spec, 0, queue_types(), "a queue");
  return {{{kInt32, {}}}, kPure, 1};
}

OpInfo resolve_is_closed(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_resource(spec, 0, queue_types(), "a queue");
  return {{{kBool, {}}}, kPure, 1};
}

}  // namespace

ResolverTable queue_ops() {
  return {
      {"FIFOQueueV2", resolve_fifo_queue},           {"PaddingFIFOQueueV2", resolve_padding_queue},
      {"PriorityQueueV2", resolve_priority_queue},   {"RandomShuffleQueueV2", resolve_shuffle_queue},
      {"QueueEnqueueV2", resolve_enqueue},           {"QueueEnqueueManyV2", resolve_enqueue_many},
      {"QueueDequeueV2", resolve_dequeue},           {"QueueDequeueManyV2", resolve_dequeue_many},
      {"QueueDequeueUpToV2", resolve_dequeue_up_to}, {"QueueCloseV2", resolve_close},
      {"QueueIsClosedV2", resolve_is_closed},        {"QueueSizeV2", resolve_queue_size},
  };
}

}  // namespace longhaul::builtin
