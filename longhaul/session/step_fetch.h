#pragma once

#include <exception>
#include <functional>
#include <vector>

#include "longhaul/graph/operation.h"
#include "longhaul/session/session.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// A request for tensors from the next training step, which computes them together with its own work.
struct StepFetch {
  std::vector<Output> fetches;
  // Called once, after the step, on the thread that made it: with the values, or with no values and the step's error.
  std::function<void(std::vector<Tensor> values, std::exception_ptr error)> done;
  const void* requester = nullptr;  // whose request it is; never dereferenced
};

// Implemented by sessions that can compute additional tensors in a step (SessionCapabilities::step_fetching). Any
// thread.
class StepFetching {
 public:
  virtual ~StepFetching() = default;

  // Adds `request` to the next training step: the next run that writes a variable, feeds all placeholders that the
  // request needs, and itself takes the queue elements and draws the random numbers that the request needs. If the
  // request is withdrawn or the session closed before a step has taken it, it is dropped and `done` is not called.
  // Each requester has one request at a time: a new one replaces its previous one.
  virtual void request_step_fetch(StepFetch request) = 0;
  virtual void withdraw_step_fetch(const void* requester) = 0;
};

// For sessions. Whether the outputs can be computed along with the request and leave everything else as it is: they
// take no input and draw no random number that the request does not take itself.
bool goes_along(const std::vector<Output>& outputs, const Session::Request& request);
// Calls `done`. What it throws is logged: the step's own outcome is not to be changed by it.
void deliver(const StepFetch& fetch, std::vector<Tensor> values, std::exception_ptr error);

}  // namespace longhaul
