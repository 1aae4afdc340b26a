#pragma once

#include <exception>
#include <functional>
#include <vector>

#include "longhaul/graph/operation.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// Tensors wanted from the next training step: the step computes them along with its own work.
struct StepFetch {
  std::vector<Output> fetches;
  // Called once, on the thread that made the step, after the step: with the values, or with nothing and the step's
  // error.
  std::function<void(std::vector<Tensor> values, std::exception_ptr error)> done;
};

// Sessions that can compute more along with a step (SessionCapabilities::step_fetching). Any thread.
class StepFetching {
 public:
  virtual ~StepFetching() = default;

  // Has `request` computed along with the next run that writes a variable, feeds all the placeholders that it needs,
  // and itself takes the elements of queues and draws the random numbers that it needs. Such a run is a training step.
  // Whoever asks can take the request back: it is dropped without a call, like that of a session that is closed, unless
  // a step has taken it already. One request at a time: a new one replaces the one before.
  virtual void request_step_fetch(StepFetch request) = 0;
  virtual void withdraw_step_fetch() = 0;
};

}  // namespace longhaul
