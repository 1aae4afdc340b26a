#pragma once

#include <cstdint>

#include "longhaul/base/cancellation.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// How one part of a run gives values to the parts on other tasks, and gets theirs: what the operations `_Send`,
// `_SendControl`, `_Recv` and `_RecvControl` of the part use. The values that go between two tasks together are a
// bundle; its number is unique within the run, and each value has a slot in it. A control edge has a
// bundle of its own, without values: an undefined Tensor in slot 0.
//
// An exchange belongs to one run, and outlives it. Any thread.
class PartExchange {
 public:
  virtual ~PartExchange() = default;

  // Hands the value over without waiting for the receiver: it may be called inside the gate, between two writes. The
  // tensor shares its bytes with the sender, which does not change them.
  virtual void send(int64_t bundle, int64_t slot, Tensor value) = 0;

  // Waits until the value is there, within the limits. Each value is asked for once. CancelledError, AbortedError,
  // DeadlineExceededError; and the error of the part that would have sent it, or of the line to it.
  virtual Tensor receive(int64_t bundle, int64_t slot, const WaitLimits& limits) = 0;
};

}  // namespace longhaul
