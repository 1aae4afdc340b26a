#pragma once

#include <memory>
#include <span>
#include <vector>

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// A tuple of tensors in a queue: its own tensors, or a row, along the first dimension, of tensors that it shares with
// the elements enqueued together with it. Bytes are shared, and live as long as an element that uses them.
class StoredElement {
 public:
  using Batch = std::shared_ptr<const std::vector<Tensor>>;
  StoredElement() = default;
  explicit StoredElement(std::vector<Tensor> components) : own_(std::move(components)) {}
  StoredElement(Batch batch, int64_t row) : batch_(std::move(batch)), row_(row) {}

  std::vector<Tensor> components() &&;
  Tensor component(size_t i) const;
  // The bytes and the sizes of one component.
  const void* data(size_t i) const;
  std::span<const int64_t> dims(size_t i) const;

  const Batch& batch() const { return batch_; }  // nullptr: it has its own tensors
  int64_t row() const { return row_; }

 private:
  std::vector<Tensor> own_;
  Batch batch_;
  int64_t row_ = 0;
};

// Component `i` of all elements as the rows of one tensor: the tensor that they were enqueued in, if they are all its
// rows in order; otherwise a new one. Where `declared` has -1, elements may differ: each size is the largest among
// them, and the padding is zero, an empty string or false. The elements must match `declared`, whose rank must be
// known.
Tensor stack_component(std::span<const StoredElement> elements, size_t i, DType dtype, const Shape& declared);

}  // namespace longhaul
