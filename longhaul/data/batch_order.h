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
  bool shuffle = true;         // true: each epoch has its own order, drawn from the seed
  int64_t num_epochs = 0;      // 0: no end
  bool drop_remainder = true;  // true: leaves out the end of the last epoch if it does not fill a step of all replicas
  int64_t num_replicas = 1;
  int64_t replica = 0;  // the number of this one: 0 .. num_replicas - 1
};

// Decides which examples are in which batch. A position is the number of examples taken so far, over all epochs and by
// all replicas. Each step takes a consecutive part of the order:
//
//   position           + batch_size       + 2 * batch_size       ...      + stride() = the next position
//   |    replica 0     |    replica 1     |          ...                  |
//
// So one of the replicas takes each example once per epoch. The examples of a step depend only on its position and
// size, not on the number of replicas that share it. A batch may span the end of an epoch. Any thread may call.
class BatchOrder {
 public:
  // InvalidArgumentError: there are no examples, batch_size is not positive, there is no such replica, num_epochs is
  // negative, or a number does not fit. The message says which.
  explicit BatchOrder(const BatchOrderOptions& options);

  // The distance between the positions of two steps.
  int64_t stride() const { return stride_; }

  // The number of examples in the batch at `position`: batch_size, fewer if a remainder is kept, 0 after the end.
  // `position` must not be negative.
  int64_t size_at(int64_t position) const;

  // InvalidArgumentError: `position` is negative. OutOfRangeError, a clean stop: the epochs have ended. `who` begins
  // the message.
  void check(int64_t position, std::string_view who) const;

  // Writes the examples of the batch at `position` to `examples`, which has exactly size_at(position) elements.
  void fill(int64_t position, std::span<int64_t> examples) const;

  // The place in the order of the first example in this replica's batch.
  int64_t first_of(int64_t position) const { return position + options_.replica * options_.batch_size; }

 private:
  const BatchOrderOptions options_;
  const int64_t stride_;
  const int64_t end_;  // the position after the last example
  const ExampleOrder order_;
};

}  // namespace longhaul
