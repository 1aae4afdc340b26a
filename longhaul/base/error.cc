#include "longhaul/base/error.h"

#include <cerrno>
#include <system_error>

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

void throw_error(Code code, const std::string& message) {
  switch (code) {
    case Code::kCancelled: throw CancelledError(message);
    case Code::kUnknown: throw UnknownError(message);
    case Code::kInvalidArgument: throw InvalidArgumentError(message);
    case Code::kDeadlineExceeded: throw DeadlineExceededError(message);
    case Code::kNotFound: throw NotFoundError(message);
    case Code::kAlreadyExists: throw AlreadyExistsError(message);
    case Code::kPermissionDenied: throw PermissionDeniedError(message);
    case Code::kResourceExhausted: throw ResourceExhaustedError(message);
    case Code::kFailedPrecondition: throw FailedPreconditionError(message);
    case Code::kAborted: throw AbortedError(message);
    case Code::kOutOfRange: throw OutOfRangeError(message);
    case Code::kUnimplemented: throw UnimplementedError(message);
    case Code::kInternal: throw InternalError(message);
    case Code::kUnavailable: throw UnavailableError(message);
    case Code::kDataLoss: throw DataLossError(message);
    case Code::kUnauthenticated: throw UnauthenticatedError(message);
    case Code::kOk: break;
  }
  throw Error(code, message);
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
    return e.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

}  // namespace longhaul
