#pragma once

#include <cstddef>
#include <string>

namespace longhaul::console {

// A file of /proc or /sys, whose size the kernel does not say: up to `most` bytes; empty: it cannot be read.
std::string kernel_text(const std::string& path, size_t most = 65536);

}  // namespace longhaul::console
