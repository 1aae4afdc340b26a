#pragma once

#include <exception>

#include "longhaul/base/error.h"
#include "longhaul/io/lock/directory_lock.h"

namespace longhaul {

// Whether an error means that the session is lost but training can continue: AbortedError, UnavailableError. A new
// session, which recovers from the last checkpoint, then continues. This function decides all restarts of sessions. A
// DirectoryAwayError does not count: it means that a save by the program failed, and a new session would lose the steps
// since the last checkpoint.
inline bool is_lost_session(Code code) {
  return code == Code::kAborted || code == Code::kUnavailable;
}
inline bool is_lost_session(const Error& error) {
  return is_lost_session(error.code()) && dynamic_cast<const DirectoryAwayError*>(&error) == nullptr;
}
bool is_lost_session(const std::exception_ptr& error);

// Whether to wait and try again to make a session. A missing directory is waited for, like a server.
inline bool may_be_made_later(const Error& error) {
  return is_lost_session(error.code());
}
inline bool may_be_made_later(const std::exception_ptr& error) {
  return is_lost_session(code_of(error));
}

}  // namespace longhaul
