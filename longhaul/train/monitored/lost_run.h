#pragma once

#include <memory>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/session/session.h"

namespace longhaul {

// A run that failed because its session was lost. It is repeated, unless its step was committed nevertheless.
struct LostRun {
  std::shared_ptr<Session> session{};  // the lost one, perhaps closed; null: there is no such run
  FailedStep step{};
  std::vector<Tensor> results{};  // of the caller's fetches, if the run was made and a hook has failed after it
};

// Whether the run's step was committed. If the error does not say so, the tasks are asked, for 10 s at most; they can
// be reached again once another session is ready. If that stays unknown, it is logged, and counts as not committed.
bool was_committed(const LostRun& run);

}  // namespace longhaul
