#pragma once

#include <utility>

#include "longhaul/train/hooks/session_run_hook.h"

namespace longhaul {

// Throws the exception that is being handled, which this call of a hook ended with, so that it tells of both and keeps
// its type: an error of one of the library's own classes says it in its message, any other is logged and thrown as it
// is.
[[noreturn]] void rethrow_naming(const SessionRunHook& hook, const char* call);

// Makes a call of a hook: call_hook(*hook, "begin", [&] { hook->begin(graph); }).
template <typename Body>
void call_hook(const SessionRunHook& hook, const char* call, Body&& body) {
  try {
    std::forward<Body>(body)();
  } catch (...) {
    rethrow_naming(hook, call);
  }
}

}  // namespace longhaul
