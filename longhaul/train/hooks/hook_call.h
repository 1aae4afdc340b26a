#pragma once

#include <string>
#include <utility>

#include "longhaul/train/hooks/session_run_hook.h"

namespace longhaul {

// The name of its class.
std::string class_name(const SessionRunHook& hook);

// Rethrows the current exception, which this call of a hook threw, and names the hook and the call. The type does not
// change: an error of the library's own classes names them in its message; any other is logged with them and rethrown
// unchanged.
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
