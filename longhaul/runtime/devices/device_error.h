#pragma once

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <string>

namespace longhaul {

// Throws an InternalError with the remedy: a device says this error, which is "the value of w cannot be read", say.
[[noreturn]] void throw_device_error(const std::string& what, const c10::Error& error);

// Whether the device is of no use any more in this process, as after a kernel that read what it must not. Waits for it.
bool has_failed(c10::Device device);

}  // namespace longhaul
