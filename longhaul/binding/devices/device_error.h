#pragma once

#include <c10/util/Exception.h>

#include <string>

namespace longhaul {

// Throws what a save of `what` comes to if its device says this: an InternalError with the remedy.
[[noreturn]] void throw_device_error(const std::string& what, const c10::Error& error);

}  // namespace longhaul
