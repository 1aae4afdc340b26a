#pragma once

#include "longhaul/session/session.h"

namespace longhaul {

// For a program that begins next to a model which is already initialised: tells the session at which step that was
// (TrainingJoining), so that its random numbers are its own. Does nothing for a session without servers. Throws what
// reading the global step throws.
void join_training(Session& session);

}  // namespace longhaul
