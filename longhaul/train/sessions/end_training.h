#pragma once

#include "longhaul/session/session.h"

namespace longhaul {

// For a chief whose training has ended without an error: tells the session's servers (TrainingEnding), for 5 s at most.
// A session without servers has nobody to tell. Errors are logged.
void tell_end_of_training(Session& session);

}  // namespace longhaul
