#pragma once

#include <cstdint>
#include <optional>

#include "longhaul/session/session.h"

namespace longhaul {

// For a program that begins next to a model which is already initialised: tells the session at which step that was
// (TrainingJoining), so that its random numbers are its own. Returns that step; 0 if the graph has no global step;
// nullopt for a session without servers, for which this does nothing. Throws what reading the step throws.
std::optional<int64_t> join_training(Session& session);

}  // namespace longhaul
