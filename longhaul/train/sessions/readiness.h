#pragma once

#include <string>
#include <vector>

#include "longhaul/session/session.h"

namespace longhaul {

// The result of a ready operation.
struct Readiness {
  bool ready = true;
  std::string why;                   // why it is not ready
  std::vector<std::string> missing;  // the names, if the operation gives them
};

// Runs the ready operation. The model is ready if the operation is invalid, or its result is not a string tensor or has
// only empty strings. Otherwise the result lists the names of everything that is not initialised; a scalar is itself
// the reason. If the operation fails because it reads something "uninitialized", the model is not ready either; any
// other error is thrown.
Readiness check_ready(Session& session, const Output& ready_op);

// Whether the session found a model that an earlier session left. This can happen on a server, where variables outlive
// sessions. It is true if `ready_op` checks variables of the model (of collections::kGlobalVariables) and reports only
// local variables as missing, which every session initialises again.
bool model_is_there(Session& session, const Output& ready_op);

}  // namespace longhaul
