#pragma once

#include <string>

namespace longhaul {

// FailedPreconditionError: the process has loaded a libtorch of another version than the library was compiled for, as
// an LD_LIBRARY_PATH can bring about, which comes before a program's own run path. Objects of the two have other
// members: the program would crash somewhere, or compute nonsense. Each session begins with it.
void require_compiled_libtorch();

// What is wrong with a libtorch of which at::show_config() says this; empty: nothing, or it does not say its version.
// Versions are compared up to the minor one: "1.13.1" is compiled for "1.13.0", too.
std::string wrong_libtorch(const std::string& compiled_for, const std::string& torch_config, const std::string& file);

}  // namespace longhaul
