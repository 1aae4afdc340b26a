#pragma once

#include <memory>
#include <span>
#include <vector>

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// A tuple of tensors in a queue: tensors of its own, or a row of tensors that it came in with others, along their first
// dimension. Bytes are shared, and live as long as an element that is in them.
class StoredElement {
 public:
  using Batch = std::shared_ptr<const std::vector<Tensor>>;
  StoredElement() = default;
  explicit StoredElement(std::vector<Tensor> components) : own_(std::move(components)) {}
  StoredElement(Batch batch, int64_t row) : batch_(std::move(batch)), row_(row) {}

  std::vector<Tensor> components() &&;
  Tensor component(size_t i) const;
  // Of one component: where its bytes are, and its sizes.
  const void* data(size_t i) const;
  std::span<const int64_t> dims(size_t i) const;

  const Batch& batch() const { return batch_; }  // nullptr: its tensors are its own
  int64_t row() const { return row_; }

 private:
  std::vector<Tensor> own_;
  Batch batch_;
  int64_t row_ = 0;
};

// Component `i` of all elements as the rows of one tensor: a tensor that they came in, where they are all of it in its
// order; else a new one. Where `declared` has -1, elements may differ: each size is the largest among them, and what is
// missing is zero, an empty string or false. The elements fit `declared`, which has a known rank.
Tensor stack_component(std::span<const StoredElement> elements, size_t i, DType dtype, const Shape& declared);

}  // namespace longhaul
