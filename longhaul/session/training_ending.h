#pragma once

#include "longhaul/base/mutex.h"

namespace longhaul {

// Implemented by sessions on servers (SessionCapabilities::training_ending). Any thread.
class TrainingEnding {
 public:
  virtual ~TrainingEnding() = default;

  // Tells the servers of the session that the training has ended for good, and will not be continued by a restart:
  // those that are joined with ServerOptions::stop_with_chief end. Waits for their answers, for that long at most; a
  // server that was not told is logged. Of a session that is lost or closed, none is told. The chief's Supervisor and
  // MonitoredSession call it.
  virtual void end_training(Seconds at_most) = 0;
};

}  // namespace longhaul
