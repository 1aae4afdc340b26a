#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "longhaul/graph/queue_signature.h"
#include "longhaul/host/queues/stored_element.h"

namespace longhaul {

struct QueueSpec {
  std::string kind;  // "FIFOQueue", for messages
  std::string name;
  QueueSignature signature;
  int64_t capacity = -1;         // -1: no bound
  size_t min_after_dequeue = 0;  // elements that stay in the queue until it is closed
};

// Checks values that are to become elements of a queue against what its spec declares. Immutable. All throw
// InvalidArgumentError.
class ElementCheck {
 public:
  // The spec outlives it. With `by_priority`, the first component is a scalar also where no shapes are declared.
  ElementCheck(const QueueSpec& spec, bool by_priority);

  void check(std::span<const Tensor> element) const;
  void check_rows(std::span<const Tensor> components) const;  // a row for each element
  void check_handle(const Operation& handle) const;           // the handle declares the same

 private:
  void check_count(size_t components) const;
  void check_component(size_t i, DType dtype, const Shape& shape) const;

  const QueueSpec& spec_;
  const std::vector<Shape> shapes_;  // those that are checked; empty: none
};

}  // namespace longhaul
