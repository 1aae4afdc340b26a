#pragma once

#include <exception>

#include "longhaul/base/error.h"

namespace longhaul {

// Whether an error means that a session is lost and the work is not: AbortedError, UnavailableError. A new session,
// which recovers from the last checkpoint, goes on. All that restarts trainings goes by this.
inline bool is_lost_session(Code code) {
  return code == Code::kAborted || code == Code::kUnavailable;
}
inline bool is_lost_session(const Error& error) {
  return is_lost_session(error.code());
}
inline bool is_lost_session(const std::exception_ptr& error) {
  return is_lost_session(code_of(error));
}

}  // namespace longhaul
