#pragma once

#include <cstdint>
#include <span>

#include "examples/idx_dataset.h"
#include "longhaul/data.h"

namespace longhaul::examples {

// Pictures as the networks take them, for a DataLoader: float [rows * columns] with pixels as 0 .. 1, and the label as
// an int64 scalar. Borrows the data.
class ImageExamples : public BatchDataset {
 public:
  explicit ImageExamples(const ImageDataset& data) : data_(data) {}

  int64_t size() const override { return data_.count; }
  Batch get_batch(std::span<const int64_t> indices, const BatchMemory& memory) const override;

 private:
  const ImageDataset& data_;
};

// The same batches for who has memory for them already: that of step N is a loader's at the position N * batch_size.
// Borrows the data. Any thread.
class Batches {
 public:
  Batches(const ImageDataset& data, uint64_t seed, int64_t batch_size);

  // Pixels into [batch_size, rows * columns], labels into [batch_size].
  void fill(int64_t step, float* images, int64_t* labels) const;

 private:
  const ImageDataset& data_;
  const int64_t batch_size_;
  const BatchOrder order_;
};

// Examples `first` to `first + count - 1` as they stand, in the same form: for evaluation.
void fill_range(const ImageDataset& data, int64_t first, int64_t count, float* images, int64_t* labels);

}  // namespace longhaul::examples
