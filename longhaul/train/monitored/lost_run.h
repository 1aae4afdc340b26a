#pragma once

#include <memory>

#include "longhaul/base/error.h"
#include "longhaul/session/session.h"

namespace longhaul {

// A run that failed with its session, which is to be made again unless its step was committed all the same.
struct LostRun {
  std::shared_ptr<Session> session{};  // that was lost, perhaps closed; null: there is no such run
  FailedStep step{};
};

// Whether the run's step was committed. If its error does not know, asks the tasks, which can be reached again once
// another session is ready, for 10 s at most. What stays unknown is logged, and counts as not committed.
bool was_committed(const LostRun& run);

}  // namespace longhaul
