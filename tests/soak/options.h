#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace longhaul::soak {

struct Options {
  std::string program, directory;
  double seconds = 60;
  uint64_t seed = 1;
  int64_t steps = 3000, width = 6000;
  std::vector<std::string> only, without;  // names of cases; no `only`: all
};

// Ends the process, with what is wrong, if they cannot be used; after --help, too.
Options parse(int argc, char** argv);

bool is_chosen(const Options& options, const std::string& name);

}  // namespace longhaul::soak
