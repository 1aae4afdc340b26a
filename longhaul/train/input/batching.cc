#include "longhaul/train/input/batching.h"

#include <fmt/format.h>

#include "longhaul/ops/input/row_ops.h"
#include "longhaul/train/input/queue_runner.h"

namespace longhaul {
namespace {

struct Shuffle {
  int32_t min_after_dequeue = 0;
  std::optional<int64_t> seed;
};

// What is put into a queue and taken out again as batches. Each source is a list of components.
struct BatchRequest {
  std::vector<InputTensors> sources;
  BatchOptions options;
  std::optional<Shuffle> shuffle;
  std::optional<Output> keep_input;
};

Output dense(const InputTensor& tensor) {
  return tensor;
}

void check_sources(const std::vector<InputTensors>& sources, const BatchOptions& options) {
  if (sources.empty() || sources[0].empty()) throw InvalidArgumentError("Expected at least one tensor to batch");
  if (options.batch_size <= 0 || options.num_threads <= 0) {
    throw InvalidArgumentError(fmt::format("batch_size and num_threads must be positive, not {} and {}",
                                           options.batch_size, options.num_threads));
  }
  for (const InputTensors& source : sources) {
    if (source.size() != sources[0].size()) {
      throw InvalidArgumentError(
          fmt::format("sources must have the same number of tensors, not {} and {}", sources[0].size(), source.size()));
    }
    for (size_t i = 0; i < source.size(); ++i) {
      if (source[i].is_sparse() != sources[0][i].is_sparse()) {
        throw InvalidArgumentError(fmt::format("component {} is sparse in one source and dense in another", i));
      }
    }
  }
}

void check_keep_input(const Output& keep, bool enqueue_many) {
  const Shape& shape = keep.shape();
  if (keep.dtype() != kBool) throw InvalidArgumentError(keep.name() + ": `keep_input` must be bool");
  if (!shape.has_rank())
    throw InvalidArgumentError(keep.name() + ": `keep_input` must have a known number of dimensions");
  if (shape.rank() > 1) throw InvalidArgumentError(keep.name() + ": `keep_input` must be 0 or 1 dimensions");
  if (shape.rank() == 1 && !enqueue_many) {
    throw InvalidArgumentError(keep.name() + ": `keep_input` cannot be a vector when enqueue_many is false");
  }
}

Output serialized(const Scope& scope, const InputTensor& tensor, bool enqueue_many) {
  if (!tensor.is_sparse()) return tensor;
  return enqueue_many ? ops::serialize_many_sparse(scope, tensor.sparse())
                      : ops::serialize_sparse(scope, tensor.sparse());
}

// The components as they go into the queue.
std::vector<Output> serialized(const Scope& scope, const InputTensors& source, bool enqueue_many) {
  std::vector<Output> tensors;
  for (const InputTensor& tensor : source) tensors.push_back(serialized(scope, tensor, enqueue_many));
  return tensors;
}

Shape example_shape(const Output& tensor, bool enqueue_many) {
  if (!tensor.shape().has_rank()) throw InvalidArgumentError("Cannot infer Tensor's rank: " + tensor.name());
  std::vector<int64_t> dims = tensor.shape().dims();
  if (!enqueue_many) return Shape(std::move(dims));
  if (dims.empty()) throw InvalidArgumentError(tensor.name() + " is a scalar: enqueue_many needs a first dimension");
  dims.erase(dims.begin());
  return Shape(std::move(dims));
}

// What both shapes say together; with padding, sizes may differ.
Shape merged(const Shape& a, const Shape& b, bool dynamic_pad, const std::string& name) {
  if (a.rank() != b.rank() || (!dynamic_pad && !a.compatible_with(b))) {
    throw InvalidArgumentError(
        fmt::format("{} has shape {} in one source and {} in another", name, b.to_string(), a.to_string()));
  }
  std::vector<int64_t> dims = a.dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t other = b.dims()[i];
    if (dynamic_pad) {
      if (dims[i] != other) dims[i] = -1;
    } else if (dims[i] < 0) {
      dims[i] = other;
    }
  }
  return Shape(std::move(dims));
}

std::vector<Shape> example_shapes(const std::vector<std::vector<Output>>& sources, const BatchOptions& options) {
  if (!options.shapes.empty()) return options.shapes;
  std::vector<Shape> shapes;
  for (size_t i = 0; i < sources[0].size(); ++i) {
    Shape shape = example_shape(sources[0][i], options.enqueue_many);
    for (const auto& source : sources) {
      shape = merged(shape, example_shape(source[i], options.enqueue_many), options.dynamic_pad, source[i].name());
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

// The tensor's examples that are kept, along a first dimension.
Output kept(const Scope& scope, const Output& tensor, const Output& keep, const BatchOptions& options,
            const Shape& example) {
  if (keep.shape().rank() == 1) return ops::mask_rows(scope, tensor, keep);
  const Output rows = ops::mask_rows(scope, ops::expand_dims(scope, tensor, 0), ops::reshape_any(scope, keep, {1}));
  if (!options.enqueue_many) return rows;
  if (!example.fully_defined()) {
    throw InvalidArgumentError(
        fmt::format("{}: with enqueue_many and a scalar `keep_input`, the shape of an example must be known, not {}",
                    tensor.name(), example.to_string()));
  }
  std::vector<int64_t> dims = example.dims();
  dims.insert(dims.begin(), -1);
  return ops::reshape_any(scope, rows, std::move(dims));
}

Operation enqueue(const Scope& scope, const QueueBase& queue, std::vector<Output> tensors,
                  const BatchRequest& request) {
  if (request.keep_input) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      tensors[i] = kept(scope, tensors[i], *request.keep_input, request.options, queue.shapes()[i]);
    }
    return queue.enqueue_many(scope, tensors);
  }
  return request.options.enqueue_many ? queue.enqueue_many(scope, tensors) : queue.enqueue(scope, tensors);
}

QueueBase add_queue(const Scope& scope, const BatchRequest& request, const std::vector<Output>& components,
                    std::vector<Shape> shapes) {
  std::vector<DType> dtypes;
  for (const Output& component : components) dtypes.push_back(component.dtype());
  const BatchOptions& options = request.options;
  const QueueOptions queue{.shapes = std::move(shapes), .shared_name = options.shared_name};
  if (request.shuffle) {
    return RandomShuffleQueue(scope, options.capacity, request.shuffle->min_after_dequeue, dtypes, queue,
                              request.shuffle->seed);
  }
  if (options.dynamic_pad) return PaddingFIFOQueue(scope, options.capacity, dtypes, queue);
  return FIFOQueue(scope, options.capacity, dtypes, queue);
}

void add_summary(const Scope& scope, const QueueBase& queue, const BatchRequest& request) {
  const int64_t capacity = request.options.capacity;
  if (!request.shuffle) {
    return add_fill_summary(scope, queue, fmt::format("fraction_of_{}_full", capacity), 0, capacity);
  }
  const int64_t above = request.shuffle->min_after_dequeue;
  add_fill_summary(scope, queue, fmt::format("fraction_over_{}_of_{}_full", above, capacity - above), above,
                   capacity - above);
}

SparseOutput restored(const Scope& scope, const Output& batch, const SparseOutput& original, bool enqueue_many) {
  const Shape& sizes = original.dense_shape.shape();
  const int rank = sizes.fully_defined() ? static_cast<int>(sizes.dim(0)) - (enqueue_many ? 1 : 0) : -1;
  return ops::deserialize_many_sparse(scope, batch, original.values.dtype(), rank);
}

InputTensors dequeue(const Scope& scope, const QueueBase& queue, const BatchRequest& request) {
  const BatchOptions& options = request.options;
  const std::vector<Output> batches = options.allow_smaller_final_batch ? queue.dequeue_up_to(scope, options.batch_size)
                                                                        : queue.dequeue_many(scope, options.batch_size);
  InputTensors results;
  for (size_t i = 0; i < batches.size(); ++i) {
    const InputTensor& original = request.sources[0][i];
    if (original.is_sparse()) {
      results.emplace_back(restored(scope, batches[i], original.sparse(), options.enqueue_many));
    } else {
      results.emplace_back(batches[i]);
    }
  }
  return results;
}

InputTensors add_batch(const Scope& scope, const std::string& default_name, BatchRequest request) {
  BatchOptions& options = request.options;
  check_sources(request.sources, options);
  if (request.keep_input) check_keep_input(*request.keep_input, options.enqueue_many);
  const Scope inner = scope.sub(options.name.empty() ? default_name : options.name);
  std::vector<std::vector<Output>> sources;
  for (const InputTensors& source : request.sources) {
    sources.push_back(serialized(inner, source, options.enqueue_many));
  }
  const QueueBase queue = add_queue(inner, request, sources[0], example_shapes(sources, options));
  std::vector<EnqueueOp> enqueues;
  for (std::vector<Output>& source : sources) enqueues.emplace_back(enqueue(inner, queue, std::move(source), request));
  if (sources.size() == 1) enqueues = std::vector<EnqueueOp>(static_cast<size_t>(options.num_threads), enqueues[0]);
  add_queue_runner(scope.graph(), QueueRunner(inner, queue, enqueues));
  add_summary(inner, queue, request);
  return dequeue(inner, queue, request);
}

BatchRequest shuffled(const std::vector<InputTensors>& sources, const ShuffleBatchOptions& options) {
  if (options.capacity <= options.min_after_dequeue) {
    throw InvalidArgumentError(fmt::format("capacity {} must be bigger than min_after_dequeue {}.", options.capacity,
                                           options.min_after_dequeue));
  }
  return {.sources = sources,
          .options = {.batch_size = options.batch_size,
                      .num_threads = options.num_threads,
                      .capacity = options.capacity,
                      .enqueue_many = options.enqueue_many,
                      .shapes = options.shapes,
                      .allow_smaller_final_batch = options.allow_smaller_final_batch,
                      .shared_name = options.shared_name,
                      .name = options.name},
          .shuffle = Shuffle{options.min_after_dequeue, options.seed}};
}

InputTensors values_of(const NamedInputTensors& tensors) {
  InputTensors values;
  for (const auto& [key, tensor] : tensors) values.push_back(tensor);
  return values;
}

std::vector<InputTensors> values_of(const std::vector<NamedInputTensors>& sources) {
  std::vector<InputTensors> values;
  for (const NamedInputTensors& source : sources) {
    const bool same = source.size() == sources[0].size() &&
                      std::equal(source.begin(), source.end(), sources[0].begin(),
                                 [](const auto& a, const auto& b) { return a.first == b.first; });
    if (!same) throw InvalidArgumentError("the sources' dictionaries must have the same keys");
    values.push_back(values_of(source));
  }
  return values;
}

// `values` in the order of the keys of `like`.
NamedInputTensors with_names(const NamedInputTensors& like, const InputTensors& values) {
  NamedInputTensors named;
  auto value = values.begin();
  for (const auto& [key, tensor] : like) named.emplace(key, *value++);
  return named;
}

const NamedInputTensors& first_of(const std::vector<NamedInputTensors>& sources) {
  if (sources.empty()) throw InvalidArgumentError("Expected at least one source to batch");
  return sources[0];
}

}  // namespace

InputTensor::operator Output() const {
  if (is_sparse())
    throw InvalidArgumentError(
        "a sparse tensor cannot be used as a dense one: use its indices, values and dense_shape");
  return std::get<Output>(value_);
}

const SparseOutput& InputTensor::sparse() const {
  if (!is_sparse()) throw InvalidArgumentError(dense(*this).name() + " is not sparse");
  return std::get<SparseOutput>(value_);
}

InputTensors batch(const Scope& scope, const InputTensors& tensors, const BatchOptions& options) {
  return add_batch(scope, "batch", {{tensors}, options, {}, {}});
}

NamedInputTensors batch(const Scope& scope, const NamedInputTensors& tensors, const BatchOptions& options) {
  return with_names(tensors, batch(scope, values_of(tensors), options));
}

InputTensors batch_join(const Scope& scope, const std::vector<InputTensors>& sources, const BatchOptions& options) {
  return add_batch(scope, "batch_join", {sources, options, {}, {}});
}

NamedInputTensors batch_join(const Scope& scope, const std::vector<NamedInputTensors>& sources,
                             const BatchOptions& options) {
  return with_names(first_of(sources), batch_join(scope, values_of(sources), options));
}

InputTensors shuffle_batch(const Scope& scope, const InputTensors& tensors, const ShuffleBatchOptions& options) {
  return add_batch(scope, "shuffle_batch", shuffled({tensors}, options));
}

NamedInputTensors shuffle_batch(const Scope& scope, const NamedInputTensors& tensors,
                                const ShuffleBatchOptions& options) {
  return with_names(tensors, shuffle_batch(scope, values_of(tensors), options));
}

InputTensors shuffle_batch_join(const Scope& scope, const std::vector<InputTensors>& sources,
                                const ShuffleBatchOptions& options) {
  return add_batch(scope, "shuffle_batch_join", shuffled(sources, options));
}

NamedInputTensors shuffle_batch_join(const Scope& scope, const std::vector<NamedInputTensors>& sources,
                                     const ShuffleBatchOptions& options) {
  return with_names(first_of(sources), shuffle_batch_join(scope, values_of(sources), options));
}

InputTensors maybe_batch(const Scope& scope, const InputTensors& tensors, const Output& keep_input,
                         const BatchOptions& options) {
  return add_batch(scope, "maybe_batch", {{tensors}, options, {}, keep_input});
}

NamedInputTensors maybe_batch(const Scope& scope, const NamedInputTensors& tensors, const Output& keep_input,
                              const BatchOptions& options) {
  return with_names(tensors, maybe_batch(scope, values_of(tensors), keep_input, options));
}

InputTensors maybe_batch_join(const Scope& scope, const std::vector<InputTensors>& sources, const Output& keep_input,
                              const BatchOptions& options) {
  return add_batch(scope, "maybe_batch_join", {sources, options, {}, keep_input});
}

InputTensors maybe_shuffle_batch(const Scope& scope, const InputTensors& tensors, const Output& keep_input,
                                 const ShuffleBatchOptions& options) {
  BatchRequest request = shuffled({tensors}, options);
  request.keep_input = keep_input;
  return add_batch(scope, "maybe_shuffle_batch", std::move(request));
}

InputTensors maybe_shuffle_batch_join(const Scope& scope, const std::vector<InputTensors>& sources,
                                      const Output& keep_input, const ShuffleBatchOptions& options) {
  BatchRequest request = shuffled(sources, options);
  request.keep_input = keep_input;
  return add_batch(scope, "maybe_shuffle_batch_join", std::move(request));
}

}  // namespace longhaul
