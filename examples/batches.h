#pragma once

#include <cstdint>

#include "examples/idx_dataset.h"
#include "longhaul/host/example_order.h"

namespace longhaul::examples {

// The batches of a training: that of step N holds the positions N * batch_size and on. Batches run on across the ends
// of epochs, so none is short. Borrows the data. Any thread.
class Batches {
 public:
  Batches(const ImageDataset& data, uint64_t seed, int64_t batch_size);

  // Pixels as 0 .. 1 into [batch_size, rows * columns], labels into [batch_size].
  void fill(int64_t step, float* images, int64_t* labels) const;

 private:
  const ImageDataset& data_;
  const ExampleOrder order_;
  const int64_t batch_size_;
};

// Examples `first` to `first + count - 1` as they stand, in the same form: for evaluation.
void fill_range(const ImageDataset& data, int64_t first, int64_t count, float* images, int64_t* labels);

}  // namespace longhaul::examples
