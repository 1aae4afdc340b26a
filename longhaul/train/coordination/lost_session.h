#pragma once

#include <exception>

#include "longhaul/base/error.h"
#include "longhaul/io/directory_lock.h"

namespace longhaul {

// Whether an error means that a session is lost and the work is not: AbortedError, UnavailableError. A new session,
// which recovers from the last checkpoint, goes on. All that restarts trainings goes by this. A DirectoryAwayError is
// none: what fails is a save of the program's own, and a new session would lose the steps since the last checkpoint.
inline bool is_lost_session(Code code) {
  return code == Code::kAborted || code == Code::kUnavailable;
}
inline bool is_lost_session(const Error& error) {
  return is_lost_session(error.code()) && dynamic_cast<const DirectoryAwayError*>(&error) == nullptr;
}
bool is_lost_session(const std::exception_ptr& error);

// Where a session is being made, its directory is waited for as a server is.
inline bool may_be_made_later(const Error& error) {
  return is_lost_session(error.code());
}
inline bool may_be_made_later(const std::exception_ptr& error) {
  return is_lost_session(code_of(error));
}

}  // namespace longhaul
