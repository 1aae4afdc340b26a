#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "longhaul/data/batch_memory.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// The components of an example; in a batch, each has one more leading dimension.
using Example = std::vector<Tensor>;
using Batch = std::vector<Tensor>;

// A number of examples, each a function of its index. Several threads call at the same time. For examples to be the
// same after a restart, they must depend only on the index, not on previous calls or a shared generator.
class Dataset {
 public:
  virtual ~Dataset() = default;

  // Must not change while the dataset is read.
  virtual int64_t size() const = 0;

  // Example 0 .. size() - 1: at least one tensor; the same number of tensors and dtypes for every example and, within a
  // batch, the same shapes. Exceptions reach the consumer of the batch, with the example's number.
  virtual Example get(int64_t index) const = 0;

  // The same, taken at that place in the order. Override it to change an example at random, differently in each epoch.
  // position / size() is the epoch; seed a generator with the position.
  virtual Example get_at(int64_t index, int64_t position) const;
};

// A dataset that makes whole batches itself, directly in their memory.
class BatchDataset : public Dataset {
 public:
  // The examples with those indices, in that order, as tensors whose first dimension is their count. Create the tensors
  // with `memory.make()`.
  virtual Batch get_batch(std::span<const int64_t> indices, const BatchMemory& memory) const = 0;

  // The same, with the first example taken at that place in the order and the others after it; a loader calls this.
  // Override it to change examples at random, see Dataset::get_at().
  virtual Batch get_batch_at(std::span<const int64_t> indices, int64_t position, const BatchMemory& memory) const;

  // A batch of one, without the first dimension.
  Example get(int64_t index) const override;
  Example get_at(int64_t index, int64_t position) const final;  // by get_batch_at(), like whole batches
};

// A function as a dataset of that size; a function of the index alone, or also of the position.
//
//   auto squares = make_dataset(100, [](int64_t i) { return Example{Tensor::scalar(i * i)}; });
std::shared_ptr<const Dataset> make_dataset(int64_t size, std::function<Example(int64_t index)> get);
std::shared_ptr<const Dataset> make_dataset(int64_t size,
                                            std::function<Example(int64_t index, int64_t position)> get_at);

// Tensors in memory, whose rows (slices along the first dimension) are the examples. Shares their bytes.
// InvalidArgumentError: there is no tensor, one is a scalar, or they have different numbers of rows.
std::shared_ptr<const Dataset> tensor_dataset(std::vector<Tensor> tensors);

}  // namespace longhaul
