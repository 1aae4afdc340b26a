#include "longhaul/train/hooks/hook_call.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <typeinfo>

#include "longhaul/base/log.h"
#include "longhaul/train/divergence/divergence_options.h"

namespace longhaul {
namespace {

// Throws the error with another text; returns if its class is not one of the library's own.
void throw_renamed(const std::exception_ptr& error, const std::string& message) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& original) {
    try {
      throw_error(original.code(), message);
    } catch (const Error& renamed) {
      if (typeid(renamed) == typeid(original)) throw;
    }
  } catch (...) {
    return;
  }
}

}  // namespace

std::string class_name(const SessionRunHook& hook) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(typeid(hook).name(), nullptr, nullptr, &status),
                                                    std::free);
  return name ? name.get() : typeid(hook).name();
}

void rethrow_naming(const SessionRunHook& hook, const char* call) {
  const std::exception_ptr error = std::current_exception();
  if (is_rollback(error)) std::rethrow_exception(error);  // no hook has failed
  const std::string message = fmt::format("hook {} failed in {}: {}", class_name(hook), call, message_of(error));
  throw_renamed(error, message);
  log_error("{}", message);
  std::rethrow_exception(error);
}

}  // namespace longhaul
