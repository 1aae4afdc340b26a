#include "longhaul/train/input/input_producers.h"

#include <fmt/format.h>

#include <limits>
#include <numeric>

#include "longhaul/ops/input/reader_ops.h"
#include "longhaul/ops/input/row_ops.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/train/input/queue_runner.h"

namespace longhaul {
namespace {

constexpr char kNoStrings[] = "string_input_producer requires a non-null input tensor";

InputProducerOptions named(InputProducerOptions options, const std::string& name) {
  if (options.name.empty()) options.name = name;
  return options;
}

Shape row_shape(const Output& input, const InputProducerOptions& options) {
  Shape known = Shape::unknown_rank();
  if (input.shape().has_rank()) {
    const auto& dims = input.shape().dims();
    if (dims.empty()) throw InvalidArgumentError(fmt::format("{} is a scalar: it has no rows", input.name()));
    known = Shape(std::vector<int64_t>(dims.begin() + 1, dims.end()));
  }
  if (options.element_shape && !options.element_shape->compatible_with(known)) {
    throw InvalidArgumentError(fmt::format("{}: rows have shape {}, but element_shape is {}", input.name(),
                                           known.to_string(), options.element_shape->to_string()));
  }
  const Shape& shape = options.element_shape ? *options.element_shape : known;
  if (!shape.fully_defined()) {
    throw InvalidArgumentError(fmt::format("{}: the rows must have a fully defined shape, not {}; pass element_shape",
                                           input.name(), shape.to_string()));
  }
  return shape;
}

int64_t rows_of(const std::vector<Output>& tensors) {
  if (tensors.empty()) throw InvalidArgumentError("Expected at least one tensor in slice_input_producer().");
  int64_t rows = -1;
  for (const Output& tensor : tensors) {
    const Shape& shape = tensor.shape();
    const int64_t own = shape.has_rank() && shape.rank() > 0 ? shape.dims()[0] : -1;
    if (own < 0 || (rows >= 0 && own != rows)) {
      throw InvalidArgumentError(
          fmt::format("{} has shape {}: slice_input_producer needs a known number of rows, the same for all tensors",
                      tensor.name(), shape.to_string()));
    }
    rows = own;
  }
  return rows;
}

}  // namespace

FIFOQueue input_producer(const Scope& scope, const Output& input, const InputProducerOptions& options) {
  const Shape row = row_shape(input, options);
  const Scope inner = scope.sub(options.name.empty() ? "input_producer" : options.name);
  const Output shuffled = options.shuffle ? ops::random_shuffle(inner, input, options.seed) : input;
  const Output limited = limit_epochs(inner, shuffled, options.num_epochs);
  const FIFOQueue queue(inner, options.capacity, {input.dtype()},
                        {.shapes = {row}, .shared_name = options.shared_name});
  add_queue_runner(scope.graph(), QueueRunner(inner, queue, {queue.enqueue_many(inner, {limited})}));
  const std::string summary =
      options.summary_name.empty() ? fmt::format("fraction_of_{}_full", options.capacity) : options.summary_name;
  add_fill_summary(inner, queue, summary, /*above=*/0, options.capacity);
  return queue;
}

FIFOQueue string_input_producer(const Scope& scope, const std::vector<std::string>& strings,
                                const InputProducerOptions& options) {
  if (strings.empty()) throw InvalidArgumentError(kNoStrings);
  const InputProducerOptions own = named(options, "input_producer");
  return input_producer(scope, ops::constant(scope, Tensor::of(strings), own.name + "_strings"), own);
}

FIFOQueue string_input_producer(const Scope& scope, const Output& strings, const InputProducerOptions& options) {
  const InputProducerOptions own = named(options, "input_producer");
  const Output checked =
      scope.add("RequireElements", own.name + "_strings", {strings}, {{"message", std::string(kNoStrings)}}).output();
  return input_producer(scope, checked, own);
}

FIFOQueue range_input_producer(const Scope& scope, int32_t limit, const InputProducerOptions& options) {
  if (limit <= 0)
    throw InvalidArgumentError(fmt::format("range_input_producer: limit must be positive, not {}", limit));
  std::vector<int32_t> range(static_cast<size_t>(limit));
  std::iota(range.begin(), range.end(), 0);
  const InputProducerOptions own = named(options, "input_producer");
  return input_producer(scope, ops::constant(scope, Tensor::of(std::move(range)), own.name + "_range"), own);
}

std::vector<Output> slice_input_producer(const Scope& scope, const std::vector<Output>& tensors,
                                         const InputProducerOptions& options) {
  const int64_t rows = rows_of(tensors);
  if (rows > std::numeric_limits<int32_t>::max()) {
    throw InvalidArgumentError(
        fmt::format("{} has {} rows: slice_input_producer numbers rows with int32", tensors[0].name(), rows));
  }
  const Scope inner = scope.sub(options.name.empty() ? "input_producer" : options.name);
  InputProducerOptions producer = options;
  producer.name = "rows";
  const FIFOQueue queue = range_input_producer(inner, static_cast<int32_t>(rows), producer);
  const Output row = queue.dequeue(inner)[0];
  std::vector<Output> slices;
  for (const Output& tensor : tensors) slices.push_back(ops::gather_rows(inner, tensor, row));
  return slices;
}

Output limit_epochs(const Scope& scope, const Output& tensor, std::optional<int64_t> num_epochs,
                    std::string_view name) {
  if (!num_epochs) return tensor;
  if (*num_epochs <= 0) throw InvalidArgumentError(fmt::format("num_epochs must be > 0 not {}.", *num_epochs));
  const Scope inner = scope.sub(name);
  const Variable epochs =
      ops::local_variable(inner, "epochs", ops::constant(inner, int64_t{0}, "epochs_initial_value"));
  const Operation counted = ops::count_up_to(inner, epochs, *num_epochs).op();
  return ops::identity(inner.with_control_dependencies({counted}), tensor, "limited");
}

Output match_filenames_once(const Scope& scope, const std::vector<std::string>& patterns, std::string_view name) {
  const Scope inner = scope.within(std::string(name) + "_pattern");
  const Output files = ops::matching_files(inner, ops::constant(inner, Tensor::of(patterns), "pattern"));
  return ops::variable(scope, name, files,
                       {.trainable = false, .collection = collections::kLocalVariables, .validate_shape = false});
}

}  // namespace longhaul
