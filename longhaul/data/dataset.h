#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "longhaul/data/batch_memory.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// The components of an example, or of a batch, where each has one more dimension in front.
using Example = std::vector<Tensor>;
using Batch = std::vector<Tensor>;

// A number of examples, each a function of its index. Several threads call at the same time. What is to be the same
// after a restart must depend on the index alone: not on the calls before, nor on a generator that they share.
class Dataset {
 public:
  virtual ~Dataset() = default;

  // Does not change while the dataset is read.
  virtual int64_t size() const = 0;

  // Example 0 .. size() - 1: at least one tensor, and of each example as many, of the same dtypes and, within a batch,
  // the same shapes. What it throws reaches the consumer of the batch, with the example's number.
  virtual Example get(int64_t index) const = 0;

  // The same, taken at that place of the order: to be overridden where an example is changed at random and not in each
  // epoch alike. position / size() is the epoch; a generator is to be seeded with the position.
  virtual Example get_at(int64_t index, int64_t position) const;
};

// A dataset that makes whole batches itself, straight into their memory.
class BatchDataset : public Dataset {
 public:
  // The examples of those numbers, in that order, as tensors whose first dimension is their count. `memory.make()` is
  // where to take them from.
  virtual Batch get_batch(std::span<const int64_t> indices, const BatchMemory& memory) const = 0;

  // The same, where the first of them is taken at that place of the order and the others behind it: what a loader
  // calls. To be overridden where examples are changed at random, see Dataset::get_at().
  virtual Batch get_batch_at(std::span<const int64_t> indices, int64_t position, const BatchMemory& memory) const;

  // A batch of one, without the first dimension.
  Example get(int64_t index) const override;
  Example get_at(int64_t index, int64_t position) const final;  // by get_batch_at(), as whole batches are
};

// A function as a dataset of that size, of the index alone or of the position as well.
//
//   auto squares = make_dataset(100, [](int64_t i) { return Example{Tensor::scalar(i * i)}; });
std::shared_ptr<const Dataset> make_dataset(int64_t size, std::function<Example(int64_t index)> get);
std::shared_ptr<const Dataset> make_dataset(int64_t size,
                                            std::function<Example(int64_t index, int64_t position)> get_at);

// Tensors in memory, whose rows (slices along the first dimension) are the examples; shares their bytes.
// InvalidArgumentError: there is no tensor, one is a scalar, or they have different numbers of rows.
std::shared_ptr<const Dataset> tensor_dataset(std::vector<Tensor> tensors);

}  // namespace longhaul
