#pragma once

#include <exception>
#include <functional>
#include <vector>

#include "longhaul/graph/operation.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// A request for tensors from the next training step, which computes them together with its own work.
struct StepFetch {
  std::vector<Output> fetches;
  // Called once, on the thread that made the step, after the step: with the values, or with no values and the step's
  // error.
  std::function<void(std::vector<Tensor> values, std::exception_ptr error)> done;
};

// Implemented by sessions that can compute additional tensors in a step (SessionCapabilities::step_fetching). Any
// thread.
class StepFetching {
 public:
  virtual ~StepFetching() = default;

  // Adds `request` to the next run that writes a variable, feeds all placeholders that the request needs, and itself
  // takes the queue elements and draws the random numbers that it needs. Such a run is a training step. A withdrawn
  // request is dropped without calling `done`, as is that of a closed session, unless a step has taken it already. One
  // request at a time: a new one replaces the previous one.
  virtual void request_step_fetch(StepFetch request) = 0;
  virtual void withdraw_step_fetch() = 0;
};

}  // namespace longhaul
