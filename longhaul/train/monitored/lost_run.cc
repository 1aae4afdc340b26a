#include "longhaul/train/monitored/lost_run.h"

#include "longhaul/base/log.h"
#include "longhaul/session/step_fates.h"

namespace longhaul {
namespace {

StepFate fate_of(const LostRun& run) {
  constexpr Seconds kAtMost{10};
  const StepFate said = run.step.fate;
  if (run.session == nullptr || (said != StepFate::kNotKnown && said != StepFate::kCommitted)) return said;
  StepFates* const fates = run.session->capabilities().step_fates;
  const StepFate now = fates != nullptr ? fates->find_fate(run.step.id, kAtMost) : StepFate::kNotKnown;
  if (said == StepFate::kCommitted && now == StepFate::kNotCommitted) {
    log_info(
        "the last run of the lost session was committed, but a task has lost it since, and the model was set back "
        "with it: the run is made again");
  }
  return now == StepFate::kNotKnown ? said : now;
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
