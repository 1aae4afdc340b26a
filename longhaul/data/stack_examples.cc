#include "longhaul/data/stack_examples.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/tensor/elements.h"

namespace longhaul {
namespace {

Batch make_batch_like(const Example& example, int64_t count, const BatchMemory& memory) {
  Batch batch;
  for (const Tensor& component : example) {
    batch.push_back(memory.make(component.dtype(), batch_shape(component.shape(), count)));
  }
  return batch;
}

void check_example(const Example& example) {
  if (example.empty()) throw InvalidArgumentError("the dataset returned no tensors; an example must have at least one");
  for (size_t i = 0; i < example.size(); ++i) {
    if (!example[i].defined()) throw InvalidArgumentError(fmt::format("its component {} is not a tensor", i));
  }
}

// `batch` was made like the first example.
void check_like(const Example& example, const Batch& batch) {
  if (example.size() != batch.size()) {
    throw InvalidArgumentError(
        fmt::format("it has {} components, but the first example of its batch has {}", example.size(), batch.size()));
  }
  for (size_t i = 0; i < example.size(); ++i) {
    const Tensor& ours = example[i];
    const std::vector<int64_t>& dims = batch[i].shape().dims();
    const bool same_shape =
        std::equal(ours.shape().dims().begin(), ours.shape().dims().end(), dims.begin() + 1, dims.end());
    if (same_shape && ours.dtype() == batch[i].dtype()) continue;
    throw InvalidArgumentError(
        fmt::format("its component {} is {}{}, but that of the first example of its batch is {}{}; all examples of a "
                    "batch must have the same dtypes and shapes",
                    i, dtype_name(ours.dtype()), ours.shape().to_string(), dtype_name(batch[i].dtype()),
                    Shape(std::vector<int64_t>(dims.begin() + 1, dims.end())).to_string()));
  }
}

void put(const Example& example, int64_t place, Batch& batch) {
  for (size_t i = 0; i < example.size(); ++i) {
    const int64_t elements = example[i].num_elements();
    copy_elements(example[i], 0, batch[i], place * elements, elements);
  }
}

}  // namespace

Shape batch_shape(const Shape& example, int64_t count) {
  std::vector<int64_t> dims{count};
  dims.insert(dims.end(), example.dims().begin(), example.dims().end());
  return Shape(std::move(dims));
}

void rethrow_from(const std::string& place) {
  const std::exception_ptr error = std::current_exception();
  const Code code = code_of(error);
  throw_error(code == Code::kOutOfRange ? Code::kInvalidArgument : code, place + ": " + message_of(error));
}

Batch stack_examples(const Dataset& dataset, std::span<const int64_t> examples, int64_t position,
                     const BatchMemory& memory, const std::atomic<bool>& abandoned) {
  Batch batch;
  const auto count = static_cast<int64_t>(examples.size());
  for (int64_t i = 0; i < count; ++i) {
    if (abandoned) throw CancelledError("the batch is no longer needed");
    const int64_t index = examples[static_cast<size_t>(i)];
    try {
      const Example example = dataset.get_at(index, position + i);
      check_example(example);
      if (i == 0) batch = make_batch_like(example, count, memory);
      check_like(example, batch);
      put(example, i, batch);
    } catch (...) {
      rethrow_from(fmt::format("data loader: example {}, at position {}", index, position + i));
    }
  }
  return batch;
}

}  // namespace longhaul
