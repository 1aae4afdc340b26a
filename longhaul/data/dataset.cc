#include "longhaul/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/data/stack_examples.h"
#include "longhaul/tensor/elements.h"

namespace longhaul {
namespace {

Shape without_first(const Shape& shape) {
  return Shape(std::vector<int64_t>(shape.dims().begin() + 1, shape.dims().end()));
}

Example only_example(Batch batch) {
  for (Tensor& component : batch) component = component.reshaped(without_first(component.shape()));
  return batch;
}

class FunctionDataset : public Dataset {
 public:
  FunctionDataset(int64_t size, std::function<Example(int64_t, int64_t)> get_at)
      : size_(size), get_at_(std::move(get_at)) {}

  int64_t size() const override { return size_; }
  Example get(int64_t index) const override { return get_at_(index, index); }
  Example get_at(int64_t index, int64_t position) const override { return get_at_(index, position); }

 private:
  const int64_t size_;
  const std::function<Example(int64_t, int64_t)> get_at_;
};

class TensorDataset : public BatchDataset {
 public:
  explicit TensorDataset(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}

  int64_t size() const override { return tensors_[0].shape().dim(0); }

  Batch get_batch(std::span<const int64_t> indices, const BatchMemory& memory) const override {
    Batch batch;
    for (const Tensor& tensor : tensors_) {
      batch.push_back(memory.make(tensor.dtype(),
                                  batch_shape(without_first(tensor.shape()), static_cast<int64_t>(indices.size()))));
      gather(tensor, indices, batch.back());
    }
    return batch;
  }

 private:
  // Rows lie far apart: their first bytes are asked for while the row before is copied.
  static void gather(const Tensor& from, std::span<const int64_t> rows, Tensor& to) {
    const int64_t elements = without_first(from.shape()).num_elements();
    const auto bytes = elements * static_cast<int64_t>(element_bytes(from.dtype()));
    const char* source = static_cast<const char*>(from.data());
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i + 1 < rows.size()) prefetch(source + rows[i + 1] * bytes, bytes);
      copy_elements(from, rows[i] * elements, to, static_cast<int64_t>(i) * elements, elements);
    }
  }

  static void prefetch(const char* bytes, int64_t count) {
    constexpr int64_t kCacheLine = 64, kMost = 1024;  // the processor sees what a longer copy is up to
    for (int64_t i = 0; i < std::min(count, kMost); i += kCacheLine) __builtin_prefetch(bytes + i);
  }

  const std::vector<Tensor> tensors_;
};

}  // namespace

Example Dataset::get_at(int64_t index, int64_t) const {
  return get(index);
}

Batch BatchDataset::get_batch_at(std::span<const int64_t> indices, int64_t, const BatchMemory& memory) const {
  return get_batch(indices, memory);
}

Example BatchDataset::get(int64_t index) const {
  return only_example(get_batch({&index, 1}, BatchMemory()));
}

Example BatchDataset::get_at(int64_t index, int64_t position) const {
  return only_example(get_batch_at({&index, 1}, position, BatchMemory()));
}

std::shared_ptr<const Dataset> make_dataset(int64_t size, std::function<Example(int64_t index)> get) {
  return make_dataset(size, [get = std::move(get)](int64_t index, int64_t) { return get(index); });
}

std::shared_ptr<const Dataset> make_dataset(int64_t size,
                                            std::function<Example(int64_t index, int64_t position)> get_at) {
  return std::make_shared<FunctionDataset>(size, std::move(get_at));
}

std::shared_ptr<const Dataset> tensor_dataset(std::vector<Tensor> tensors) {
  if (tensors.empty()) throw InvalidArgumentError("a dataset of tensors needs at least one tensor");
  for (const Tensor& tensor : tensors) {
    if (tensor.shape().rank() == 0) {
      throw InvalidArgumentError("a dataset of tensors: " + tensor.to_string() + " has no rows to use as examples");
    }
    if (tensor.shape().dim(0) != tensors[0].shape().dim(0)) {
      throw InvalidArgumentError(
          fmt::format("a dataset of tensors with {} and {} rows; all must have the same number of rows",
                      tensors[0].shape().dim(0), tensor.shape().dim(0)));
    }
  }
  return std::make_shared<TensorDataset>(std::move(tensors));
}

}  // namespace longhaul
