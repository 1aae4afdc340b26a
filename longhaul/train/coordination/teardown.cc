#include "longhaul/train/coordination/teardown.h"

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"

namespace longhaul {
namespace {

// A sink of the program's may throw, too.
void log_later_error(const std::string& what, const std::exception_ptr& error) noexcept {
  try {
    log_error("a later error is only logged: {} (from {})", message_of(error), what);
  } catch (...) {
  }
}

}  // namespace

void Teardown::step(const std::string& what, const std::function<void()>& body) {
  try {
    steps_.push_back(what);
  } catch (...) {  // no memory: the step is what counts
  }
  try {
    body();
  } catch (...) {
    if (error_) return log_later_error(what, std::current_exception());
    error_ = std::current_exception();
  }
}

void Teardown::outrank(const std::exception_ptr& cause) {
  if (!cause || cause == error_) return;
  if (error_) log_later_error("the training", error_);
  error_ = cause;
}

void Teardown::raise_error() const {
  if (error_) std::rethrow_exception(error_);
}

}  // namespace longhaul
