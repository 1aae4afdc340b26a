#pragma once

#include <string>
#include <vector>

#include "longhaul/session/session.h"

namespace longhaul {

// What a ready operation says.
struct Readiness {
  bool ready = true;
  std::string why;                   // it is not
  std::vector<std::string> missing;  // the names, where the operation gives them
};

// Runs the ready operation. Ready are: an invalid one; a result that is no string tensor, or one without a string that
// is not empty. Otherwise the result has the names of what is not initialised, or, where it is a scalar, says itself
// why the model is not ready. An operation that fails because it reads something "uninitialized" says no, too; any
// other error of it is thrown.
Readiness check_ready(Session& session, const Output& ready_op);

// Whether the session has found a model that an earlier one left, as it can be on a server, where variables outlive
// sessions: `ready_op` looks at variables of the model (of collections::kGlobalVariables), and misses nothing but
// local variables, which every session initialises anew.
bool model_is_there(Session& session, const Output& ready_op);

}  // namespace longhaul
