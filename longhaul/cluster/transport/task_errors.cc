#include "longhaul/cluster/transport/task_errors.h"

#include <fmt/format.h>

#include <random>

namespace longhaul {
namespace {

std::exception_ptr error_with(Code code, const std::string& message, bool is_consequence) {
  try {
    if (is_consequence) throw ConsequenceError(code, message);
    throw_error(code, message);
  } catch (...) {
    return std::current_exception();
  }
}

// What another version may send: an unknown number is no success.
Code known_code(int number) {
  const bool is_known = number > 0 && number <= static_cast<int>(Code::kUnauthenticated);
  return is_known ? static_cast<Code>(number) : Code::kUnknown;
}

}  // namespace

std::string task_text(const std::string& task, const std::string& address) {
  return address.empty() || address == task ? fmt::format("task {}", task) : fmt::format("task {} ({})", task, address);
}

std::string unanswered_text(const std::string& task, const std::string& address, const std::string& method,
                            Seconds waited) {
  return fmt::format("{} has not answered {} for {:.3g} s", task_text(task, address), method, waited.count());
}

std::exception_ptr wrong_incarnation(const std::string& method, const std::string& task, uint64_t wanted,
                                     uint64_t found) {
  return std::make_exception_ptr(AbortedError(fmt::format(
      "{} expects a different device incarnation: {} vs. {}. Your worker job (\"{}\") was probably restarted. Check "
      "your worker job for the reason why it was restarted.",
      method, wanted, found, task)));
}

ConsequenceError::ConsequenceError(std::exception_ptr cause) : Error(code_of(cause), message_of(cause)) {}

bool is_consequence(const std::exception_ptr& error) {
  if (error == nullptr) return false;
  try {
    std::rethrow_exception(error);
  } catch (const ConsequenceError&) {
    return true;
  } catch (...) {
    return false;
  }
}

proto::ErrorBody to_error_body(const std::exception_ptr& error) {
  proto::ErrorBody body;
  if (error == nullptr) return body;
  body.set_code(static_cast<proto::error::Code>(code_of(error)));
  body.set_message(message_of(error));
  body.set_is_consequence(is_consequence(error));
  return body;
}

std::exception_ptr from_error_body(const proto::ErrorBody& body) {
  if (body.code() == proto::error::OK) return nullptr;
  return error_with(known_code(body.code()), body.message(), body.is_consequence());
}

std::exception_ptr from_task(const std::string& task, const std::exception_ptr& error) {
  constexpr char kPrefix[] = "From /job:";
  const std::string text = message_of(error);
  if (error == nullptr || text.rfind(kPrefix, 0) == 0) return error;
  return error_with(code_of(error), fmt::format("From {}:\n{}", task, text), is_consequence(error));
}

uint64_t new_incarnation() {
  std::random_device random;
  uint64_t bits = 0;
  while (bits == 0) bits = uint64_t{random()} << 32 | random();
  return bits;
}

}  // namespace longhaul
