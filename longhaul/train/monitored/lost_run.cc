#include "longhaul/train/monitored/lost_run.h"

#include "longhaul/base/log.h"
#include "longhaul/session/step_fates.h"

namespace longhaul {
namespace {

StepFate fate_of(const LostRun& run) {
  constexpr Seconds kAtMost{10};
  if (run.session == nullptr || run.step.fate != StepFate::kNotKnown) return run.step.fate;
  StepFates* const fates = run.session->capabilities().step_fates;
  return fates != nullptr ? fates->find_fate(run.step.id, kAtMost) : StepFate::kNotKnown;
}

}  // namespace

bool was_committed(const LostRun& run) {
  const StepFate fate = fate_of(run);
  if (fate == StepFate::kCommitted) {
    log_info("the last run of the lost session was committed: it is not made again");
  } else if (fate == StepFate::kNotKnown) {
    log_warning(
        "the session was lost in a step, and its tasks do not tell whether they have committed it: it is made again, "
        "perhaps for the second time");
  }
  return fate == StepFate::kCommitted;
}

}  // namespace longhaul
