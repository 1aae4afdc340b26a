#pragma once

#include <cstdint>

#include "examples/idx_dataset.h"

namespace longhaul::examples {

// The order in which a training sees its examples: each epoch is a permutation of all of them, drawn from the seed. Any
// place in it is computed on its own, in constant time and memory, so a training that starts again at step N sees what
// it would have seen. Any thread.
class ExampleOrder {
 public:
  // `count` examples: at least one.
  ExampleOrder(int64_t count, uint64_t seed);

  // The example at `position`, counted from the start of the training over all epochs.
  int64_t at(int64_t position) const;

 private:
  uint64_t permute(uint64_t value, uint64_t key) const;

  const uint64_t count_;
  const uint64_t seed_;
  const int half_bits_;  // the permutation works on 2 * half_bits_ bits: the next even number that holds count_
};

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
