#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "longhaul/data/example_order.h"

namespace longhaul {

struct BatchOrderOptions {
  int64_t num_examples = 0;
  int64_t batch_size = 1;  // of each replica
  int64_t seed = 0;
  bool shuffle = true;         // each epoch in its own order, drawn from the seed
  int64_t num_epochs = 0;      // 0: no end
  bool drop_remainder = true;  // leave out the end of the last epoch if it does not fill a step of all replicas
  int64_t num_replicas = 1;
  int64_t replica = 0;  // the number of this one: 0 .. num_replicas - 1
};

// Which examples are in which batch. A position counts the examples taken, over all epochs and by all replicas; each
// step takes a stretch of the order:
//
//   position           + batch_size       + 2 * batch_size       ...      + stride() = the next position
//   |    replica 0     |    replica 1     |          ...                  |
//
// So each example is taken once per epoch, by one of the replicas; and the examples of a step depend only on its
// position and size, not on how many replicas share it. Batches may span the end of an epoch. Any thread.
class BatchOrder {
 public:
  // InvalidArgumentError: there are no examples, batch_size is not positive, there is no such replica, num_epochs is
  // negative, or a number does not fit. The message says which.
  explicit BatchOrder(const BatchOrderOptions& options);

  // How far the position moves with each step.
  int64_t stride() const { return stride_; }

  // How many examples the batch at `position` has: batch_size, fewer if a remainder is kept, 0 after the end.
  // `position` must not be negative.
  int64_t size_at(int64_t position) const;

  // InvalidArgumentError: `position` is negative. OutOfRangeError, a clean stop: the epochs have ended. `who` begins
  // the message.
  void check(int64_t position, std::string_view who) const;

  // Writes the examples of the batch at `position` to `examples`, which has exactly size_at(position) elements.
  void fill(int64_t position, std::span<int64_t> examples) const;

  // The place in the order of the first example of this replica's batch.
  int64_t first_of(int64_t position) const { return position + options_.replica * options_.batch_size; }

 private:
  const BatchOrderOptions options_;
  const int64_t stride_;
  const int64_t end_;  // the position after the last example
  const ExampleOrder order_;
};

}  // namespace longhaul
