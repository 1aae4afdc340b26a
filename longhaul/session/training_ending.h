#pragma once

#include "longhaul/base/mutex.h"

namespace longhaul {

// Implemented by sessions on servers (SessionCapabilities::training_ending). Any thread.
class TrainingEnding {
 public:
  virtual ~TrainingEnding() = default;

  // Tells the servers of the session that the training run has ended for good: no restart will continue it. Servers
  // that were joined with ServerOptions::stop_with_chief then end. Waits for their answers, at most for that long, and
  // logs which servers could not be told. Does nothing for a session that is lost or closed. The chief's Supervisor and
  // MonitoredSession call it.
  virtual void end_training(Seconds at_most) = 0;
};

}  // namespace longhaul
