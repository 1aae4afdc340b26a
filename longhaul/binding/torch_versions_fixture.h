#pragma once

#include <c10/util/Exception.h>
#include <torch/version.h>

// What the versions of libtorch name differently, and no type trait can tell apart: the only code of ours that asks for
// the version (tests/include_lint.sh).
namespace longhaul {

#if TORCH_VERSION_MAJOR < 2  // c10::Warning is a class since
namespace warnings_of_libtorch = c10::Warning;
#else
namespace warnings_of_libtorch = c10::WarningUtils;
#endif

// Counts libtorch's warnings while a WarningHandlerGuard has it. What a handler is called with differs as well.
template <typename Process>
class Counted;
template <typename... Args>
class Counted<void (c10::WarningHandler::*)(Args...)> : public c10::WarningHandler {
 public:
  void process(Args...) override { ++count; }
  int count = 0;
};
using CountedWarnings = Counted<decltype(&c10::WarningHandler::process)>;

}  // namespace longhaul
