#include "longhaul/train/sessions/end_training.h"

#include "longhaul/base/log.h"
#include "longhaul/session/capabilities.h"
#include "longhaul/session/training_ending.h"

namespace longhaul {

void tell_end_of_training(Session& session) {
  constexpr Seconds kMost{5};
  try {
    if (TrainingEnding* const ending = session.capabilities().training_ending) ending->end_training(kMost);
  } catch (const std::exception& error) {
    log_warning("the training has ended, but its servers were not told: {}", error.what());
  }
}

}  // namespace longhaul
