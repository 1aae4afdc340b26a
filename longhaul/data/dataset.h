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

// A fixed number of examples, each a function of its index. Several threads may call at the same time. So that examples
// are the same after a restart, they must depend only on the index, not on previous calls or a shared generator.
class Dataset {
 public:
  virtual ~Dataset() = default;

  // The number of examples. It must not change while the dataset is read.
  virtual int64_t size() const = 0;

  // Returns example `index`, from 0 to size() - 1: at least one tensor. All examples must have the same number of
  // tensors and the same dtypes and, within a batch, the same shapes. The consumer of the batch gets the exceptions,
  // with the example's number.
  virtual Example get(int64_t index) const = 0;

  // The same for the example that is taken at `position` in the order. Override it to change an example at random,
  // differently in each epoch: seed a generator with the position. position / size() is the epoch.
  virtual Example get_at(int64_t index, int64_t position) const;
};

// A dataset that makes whole batches itself, directly in their memory.
class BatchDataset : public Dataset {
 public:
  // Returns the examples with these indices, in this order, as tensors whose first dimension is the number of examples.
  // Create the tensors with `memory.make()`.
  virtual Batch get_batch(std::span<const int64_t> indices, const BatchMemory& memory) const = 0;

  // The same for examples that are taken from `position` on in the order. A loader calls this. Override it to change
  // examples at random: see Dataset::get_at().
  virtual Batch get_batch_at(std::span<const int64_t> indices, int64_t position, const BatchMemory& memory) const;

  // Both make a batch of one, without the first dimension.
  Example get(int64_t index) const override;
  Example get_at(int64_t index, int64_t position) const final;  // calls get_batch_at(), as for whole batches
};

// Makes a dataset of that size from a function of the index, or of the index and the position.
//
//   auto squares = make_dataset(100, [](int64_t i) { return Example{Tensor::scalar(i * i)}; });
std::shared_ptr<const Dataset> make_dataset(int64_t size, std::function<Example(int64_t index)> get);
std::shared_ptr<const Dataset> make_dataset(int64_t size,
                                            std::function<Example(int64_t index, int64_t position)> get_at);

// Makes a dataset from tensors in memory, whose bytes it shares. Their rows (slices along the first dimension) are the
// examples. InvalidArgumentError: there is no tensor, one is a scalar, or they have different numbers of rows.
std::shared_ptr<const Dataset> tensor_dataset(std::vector<Tensor> tensors);

}  // namespace longhaul
