#include "longhaul/base/error.h"

#include <cerrno>
#include <system_error>
#include <typeinfo>

namespace longhaul {

const char* code_name(Code code) {
  switch (code) {
    case Code::kOk: return "OK";
    case Code::kCancelled: return "CANCELLED";
    case Code::kUnknown: return "UNKNOWN";
    case Code::kInvalidArgument: return "INVALID_ARGUMENT";
    case Code::kDeadlineExceeded: return "DEADLINE_EXCEEDED";
    case Code::kNotFound: return "NOT_FOUND";
    case Code::kAlreadyExists: return "ALREADY_EXISTS";
    case Code::kPermissionDenied: return "PERMISSION_DENIED";
    case Code::kResourceExhausted: return "RESOURCE_EXHAUSTED";
    case Code::kFailedPrecondition: return "FAILED_PRECONDITION";
    case Code::kAborted: return "ABORTED";
    case Code::kOutOfRange: return "OUT_OF_RANGE";
    case Code::kUnimplemented: return "UNIMPLEMENTED";
    case Code::kInternal: return "INTERNAL";
    case Code::kUnavailable: return "UNAVAILABLE";
    case Code::kDataLoss: return "DATA_LOSS";
    case Code::kUnauthenticated: return "UNAUTHENTICATED";
  }
  return "UNKNOWN";
}

namespace {

template <typename Thrown>
[[noreturn]] void throw_of_step(const std::string& message, const FailedStep& step) {
  Thrown error(message);
  error.set_failed_step(step);
  throw error;
}

}  // namespace

void throw_error(Code code, const std::string& message, const FailedStep& step) {
  switch (code) {
    case Code::kCancelled: throw_of_step<CancelledError>(message, step);
    case Code::kUnknown: throw_of_step<UnknownError>(message, step);
    case Code::kInvalidArgument: throw_of_step<InvalidArgumentError>(message, step);
    case Code::kDeadlineExceeded: throw_of_step<DeadlineExceededError>(message, step);
    case Code::kNotFound: throw_of_step<NotFoundError>(message, step);
    case Code::kAlreadyExists: throw_of_step<AlreadyExistsError>(message, step);
    case Code::kPermissionDenied: throw_of_step<PermissionDeniedError>(message, step);
    case Code::kResourceExhausted: throw_of_step<ResourceExhaustedError>(message, step);
    case Code::kFailedPrecondition: throw_of_step<FailedPreconditionError>(message, step);
    case Code::kAborted: throw_of_step<AbortedError>(message, step);
    case Code::kOutOfRange: throw_of_step<OutOfRangeError>(message, step);
    case Code::kUnimplemented: throw_of_step<UnimplementedError>(message, step);
    case Code::kInternal: throw_of_step<InternalError>(message, step);
    case Code::kUnavailable: throw_of_step<UnavailableError>(message, step);
    case Code::kDataLoss: throw_of_step<DataLossError>(message, step);
    case Code::kUnauthenticated: throw_of_step<UnauthenticatedError>(message, step);
    case Code::kOk: break;
  }
  Error error(code, message);
  error.set_failed_step(step);
  throw error;
}

namespace {

Code code_of_errno(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR: return Code::kNotFound;
    case EEXIST: return Code::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS: return Code::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM: return Code::kResourceExhausted;
    case EINVAL:
    case EISDIR:
    case ENAMETOOLONG: return Code::kInvalidArgument;
    case ENOTEMPTY: return Code::kFailedPrecondition;
    case EINTR:
    case EAGAIN:
    case EBUSY: return Code::kUnavailable;
    case EIO: return Code::kDataLoss;
    default: return Code::kUnknown;
  }
}

}  // namespace

void throw_errno(int error_number, const std::string& what) {
  throw_error(code_of_errno(error_number), what + ": " + std::generic_category().message(error_number));
}

Code code_of(const std::exception_ptr& error) {
  if (!error) return Code::kOk;
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.code();
  } catch (...) {
    return Code::kUnknown;
  }
}

std::string message_of(const std::exception_ptr& error) {
  if (!error) return "";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    const char* const text = e.what();  // of a class of the program's own: perhaps null
    return text != nullptr ? text : std::string("an exception without a text: ") + typeid(e).name();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

FailedStep failed_step_of(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.failed_step();
  } catch (...) {
    return {};
  }
}

}  // namespace longhaul
