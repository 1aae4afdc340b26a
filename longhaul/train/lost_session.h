#pragma once

#include "longhaul/base/error.h"

namespace longhaul {

// Whether an error means that a session is lost and the work is not: AbortedError, UnavailableError. A new session,
// which recovers from the last checkpoint, goes on. All that restarts trainings goes by this.
inline bool is_lost_session(const Error& error) {
  return error.code() == Code::kAborted || error.code() == Code::kUnavailable;
}

}  // namespace longhaul
