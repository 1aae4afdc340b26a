#pragma once

#include "longhaul/base/clock.h"

namespace longhaul {

// Implemented by sessions on servers (SessionCapabilities::model_reset). Any thread.
class ModelReset {
 public:
  virtual ~ModelReset() = default;

  // Empties all containers of the tasks that the session's runs have named: the model is gone there. All sessions of
  // these tasks end, this one too: their runs throw AbortedError from then on. UnavailableError, DeadlineExceededError:
  // a task, which is named, has not done so within that time; the others have. AbortedError: the session was lost
  // before.
  virtual void reset_model(Seconds at_most) = 0;
};

}  // namespace longhaul
