#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "longhaul/host/queues/stored_element.h"

namespace longhaul {

// The elements of a queue, and the order in which they are taken. One thread at a time.
class ElementStore {
 public:
  virtual ~ElementStore() = default;
  virtual void put(StoredElement element) = 0;
  virtual StoredElement take() = 0;  // only if there is one
  // Puts back the most recently taken elements, in that order: they will be taken next again.
  virtual void put_back(std::vector<StoredElement> taken) = 0;
  virtual size_t size() const = 0;
  // Whether it orders the elements by their first component, which must then be a scalar int64.
  virtual bool by_priority() const { return false; }
};

std::unique_ptr<ElementStore> make_fifo_store();
// Takes at random. Seeds 0, 0: a different order each time.
std::unique_ptr<ElementStore> make_shuffle_store(uint64_t seed, uint64_t seed2);
// Takes the smallest first, by the first component, a scalar int64; among equal ones, the oldest.
std::unique_ptr<ElementStore> make_priority_store();

}  // namespace longhaul
