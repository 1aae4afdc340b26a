#pragma once

#include <concepts>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "longhaul/ops/input/parsing_ops.h"
#include "longhaul/ops/input/queue_ops.h"

namespace longhaul {

// A component of an example: a dense or a sparse tensor. A dense one converts to Output.
class InputTensor {
 public:
  template <std::convertible_to<Output> T>
  InputTensor(const T& tensor) : value_(Output(tensor)) {}
  InputTensor(SparseOutput sparse) : value_(sparse) {}

  bool is_sparse() const { return value_.index() == 1; }
  // InvalidArgumentError: the tensor is of the other kind.
  operator Output() const;
  const SparseOutput& sparse() const;

 private:
  std::variant<Output, SparseOutput> value_;
};
using InputTensors = std::vector<InputTensor>;
// Tensors by key. The queue holds them in the order of the keys.
class NamedInputTensors : public std::map<std::string, InputTensor> {
 public:
  NamedInputTensors() = default;
  NamedInputTensors(std::initializer_list<value_type> components) : map(components) {}
};

struct BatchOptions {
  int32_t batch_size = 0;
  int num_threads = 1;          // of the threads that enqueue; more than one mix up the order of examples
  int32_t capacity = 32;        // of the queue, in examples
  bool enqueue_many = false;    // whether each tensor holds many examples, along its first dimension
  std::vector<Shape> shapes{};  // of the examples' components; empty: the tensors'
  bool dynamic_pad = false;     // components may differ in size: padded at the end with zeros or empty strings
  bool allow_smaller_final_batch = false;  // false: a remainder at the end is dropped
  std::string shared_name{};               // of the queue
  std::string name{};                      // of the scope; empty: the function's name
};

struct ShuffleBatchOptions {
  int32_t batch_size = 0;
  int32_t capacity = 0;           // more than min_after_dequeue
  int32_t min_after_dequeue = 0;  // the number of examples left to choose from
  int num_threads = 1;
  std::optional<int64_t> seed{};
  bool enqueue_many = false;
  std::vector<Shape> shapes{};
  bool allow_smaller_final_batch = false;
  std::string shared_name{};
  std::string name{};
};

// Makes batches of examples. A QueueRunner, which is added to the graph's collection, fills a queue with `tensors`,
// computed once per example (with enqueue_many: once per group of examples). Returns the dequeued tensors, each of
// shape [batch_size, ...]. At the end of the input they fail with OutOfRangeError. Batches of a sparse component are
// sparse.
//
//   // image and label are one example, from a reader
//   auto batch = longhaul::batch(root, {image, label}, {.batch_size = 32});
//
// InvalidArgumentError: there are no tensors; a shape is not known ("Cannot infer Tensor's rank"); the join functions
// get lists of different lengths, dtypes or keys.
InputTensors batch(const Scope& scope, const InputTensors& tensors, const BatchOptions& options);
NamedInputTensors batch(const Scope& scope, const NamedInputTensors& tensors, const BatchOptions& options);

// The same from several sources, with one thread for each. The order within a source is kept.
InputTensors batch_join(const Scope& scope, const std::vector<InputTensors>& sources, const BatchOptions& options);
NamedInputTensors batch_join(const Scope& scope, const std::vector<NamedInputTensors>& sources,
                             const BatchOptions& options);

// The same in a random order.
InputTensors shuffle_batch(const Scope& scope, const InputTensors& tensors, const ShuffleBatchOptions& options);
NamedInputTensors shuffle_batch(const Scope& scope, const NamedInputTensors& tensors,
                                const ShuffleBatchOptions& options);
InputTensors shuffle_batch_join(const Scope& scope, const std::vector<InputTensors>& sources,
                                const ShuffleBatchOptions& options);
NamedInputTensors shuffle_batch_join(const Scope& scope, const std::vector<NamedInputTensors>& sources,
                                     const ShuffleBatchOptions& options);

// The same with only those examples for which `keep_input` is true. It is a bool scalar or, with enqueue_many, also a
// vector with one element per example. InvalidArgumentError: another shape, or one that is not known.
InputTensors maybe_batch(const Scope& scope, const InputTensors& tensors, const Output& keep_input,
                         const BatchOptions& options);
NamedInputTensors maybe_batch(const Scope& scope, const NamedInputTensors& tensors, const Output& keep_input,
                              const BatchOptions& options);
InputTensors maybe_batch_join(const Scope& scope, const std::vector<InputTensors>& sources, const Output& keep_input,
                              const BatchOptions& options);
InputTensors maybe_shuffle_batch(const Scope& scope, const InputTensors& tensors, const Output& keep_input,
                                 const ShuffleBatchOptions& options);
InputTensors maybe_shuffle_batch_join(const Scope& scope, const std::vector<InputTensors>& sources,
                                      const Output& keep_input, const ShuffleBatchOptions& options);

}  // namespace longhaul
