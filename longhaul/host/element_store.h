#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// What a queue holds one of: a tensor for each component.
using QueueElement = std::vector<Tensor>;

// The elements of a queue and the order in which it gives them. One thread at a time.
class ElementStore {
 public:
  virtual ~ElementStore() = default;
  virtual void put(QueueElement element) = 0;
  virtual QueueElement take() = 0;  // only where there is one
  // Elements that were the last to be taken, in that order: they will be the next again.
  virtual void put_back(std::vector<QueueElement> taken) = 0;
  virtual size_t size() const = 0;
};

std::unique_ptr<ElementStore> make_fifo_store();
// Takes at random. Seeds 0, 0: another order each time.
std::unique_ptr<ElementStore> make_shuffle_store(uint64_t seed, uint64_t seed2);
// Takes the smallest first, by the first component, a scalar int64; of equal ones the oldest.
std::unique_ptr<ElementStore> make_priority_store();

}  // namespace longhaul
