#pragma once

#include <cstdint>

namespace longhaul {

// The order in which a training run sees its examples: each epoch is a permutation of all of them, drawn from the seed.
// Each place in the order is computed independently, in constant time and memory, so a run that restarts at step N sees
// the same examples as without the restart. Any thread may call.
class ExampleOrder {
 public:
  // `count` examples: at least one.
  ExampleOrder(int64_t count, uint64_t seed);

  // The example at `position`, counted over all epochs from the start of the training run.
  int64_t at(int64_t position) const;

 private:
  uint64_t permute(uint64_t value, uint64_t key) const;

  const uint64_t count_;
  const uint64_t seed_;
  const int half_bits_;  // the permutation works on 2 * half_bits_ bits: the smallest even number that can hold count_
};

}  // namespace longhaul
