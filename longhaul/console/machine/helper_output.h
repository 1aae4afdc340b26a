#pragma once

#include <string>

#include "longhaul/base/clock.h"

namespace longhaul::console {

// What a program without arguments writes to its standard output, or why it is not known: it is not there, it took too
// long and was killed, or it ended with an error.
struct HelperOutput {
  std::string text{};
  std::string problem{};  // empty: there is none
};
HelperOutput output_of(const std::string& program, Seconds time_limit);

// The path of a program that is installed with this one: in its own folder, or in ../libexec/longhaul; empty: none is.
std::string helper_path(const std::string& name);

}  // namespace longhaul::console
