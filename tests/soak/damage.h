#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/soak/hostile_files.h"
#include "tests/soak/training.h"

namespace longhaul::soak {

using Checkpoints = std::map<int64_t, std::string>;  // prefixes by step

// The whole checkpoints in a directory, each read and its checksums compared.
Checkpoints intact_checkpoints(const std::string& directory);

bool is_named_by_state_file(const std::string& directory, const std::string& prefix);

// Whether a line of a log has both.
bool has_line_with(const std::string& log, const std::string& one, const std::string& other);

void overwrite(const std::string& path, const std::string& bytes);

// What was done to the files of a directory.
struct Damage {
  std::string kind;            // empty: there was nothing to damage
  bool is_checkpoint = false;  // it was to one
  std::string lost_index;      // the prefix of a checkpoint that has lost its index, and nothing else
};

// A way to do to the files of a directory what disks and people do, while nobody trains there. Of the checkpoints at
// least one stays whole.
struct DamageCase {
  const char* name;  // on the command line
  unsigned weight;   // it comes as often, relative to the others
  const char* what;  // to people
  Damage (*damage)(const std::string& directory, const Bystanders& bystanders, Random& random);
};

const std::vector<DamageCase>& damage_cases();

}  // namespace longhaul::soak
