#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

namespace longhaul {

// The canonical error codes, with the numbers of google.rpc.Code and of TensorFlow's error_codes.proto. A code says
// what the caller should do about the error; docs/errors.md lists them.
enum class Code {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// "OUT_OF_RANGE", ...
const char* code_name(Code code);

// What became of a training step, for whoever may make it again.
enum class StepFate {
  kNotTold,       // the error is none of a step that writes, or means by its class that nothing was written
  kNotCommitted,  // no variable was changed: it may be made again
  kCommitted,     // it takes place on all its tasks, only its results are lost: it must not be made again
  kNotKnown,      // its tasks know, once they can be reached: session/step_fates.h
};

// The step in which an error arose, as far as a session of several tasks knows it.
struct FailedStep {
  StepFate fate = StepFate::kNotTold;
  int64_t id = 0;  // that the session gave it; 0: none
  bool operator==(const FailedStep&) const = default;
};

// The library throws it for every error that the outside world can cause. Each code has a derived class, so that errors
// can be caught by type.
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }

  // Copies of the error have the same.
  const FailedStep& failed_step() const { return step_; }
  void set_failed_step(const FailedStep& step) { step_ = step; }

 private:
  Code code_;
  FailedStep step_;
};

#define LONGHAUL_ERROR_CLASS(Name, code_value)                                      \
  class Name : public Error {                                                       \
   public:                                                                          \
    explicit Name(const std::string& message) : Error(Code::code_value, message) {} \
  }
LONGHAUL_ERROR_CLASS(CancelledError, kCancelled);
LONGHAUL_ERROR_CLASS(UnknownError, kUnknown);
LONGHAUL_ERROR_CLASS(InvalidArgumentError, kInvalidArgument);
LONGHAUL_ERROR_CLASS(DeadlineExceededError, kDeadlineExceeded);
LONGHAUL_ERROR_CLASS(NotFoundError, kNotFound);
LONGHAUL_ERROR_CLASS(AlreadyExistsError, kAlreadyExists);
LONGHAUL_ERROR_CLASS(PermissionDeniedError, kPermissionDenied);
LONGHAUL_ERROR_CLASS(ResourceExhaustedError, kResourceExhausted);
LONGHAUL_ERROR_CLASS(FailedPreconditionError, kFailedPrecondition);
LONGHAUL_ERROR_CLASS(AbortedError, kAborted);
LONGHAUL_ERROR_CLASS(OutOfRangeError, kOutOfRange);
LONGHAUL_ERROR_CLASS(UnimplementedError, kUnimplemented);
LONGHAUL_ERROR_CLASS(InternalError, kInternal);
LONGHAUL_ERROR_CLASS(UnavailableError, kUnavailable);
LONGHAUL_ERROR_CLASS(DataLossError, kDataLoss);
LONGHAUL_ERROR_CLASS(UnauthenticatedError, kUnauthenticated);
#undef LONGHAUL_ERROR_CLASS

// Throws the derived class for `code`, or Error itself if `code` is not one of the above.
[[noreturn]] void throw_error(Code code, const std::string& message, const FailedStep& step = {});

// Throws the error for a failed system call: "<what>: <strerror>", with the code that matches `error_number` (ENOENT is
// NotFound, EACCES PermissionDenied, ENOSPC ResourceExhausted, ...).
[[noreturn]] void throw_errno(int error_number, const std::string& what);

// The code and the message of a caught exception: kUnknown for one that is not an Error, kOk for a null pointer.
Code code_of(const std::exception_ptr& error);
std::string message_of(const std::exception_ptr& error);
// Error::failed_step() of a caught exception; a default FailedStep for one that is not an Error, and for a null
// pointer.
FailedStep failed_step_of(const std::exception_ptr& error);

}  // namespace longhaul
