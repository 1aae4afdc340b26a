#pragma once

#include <map>
#include <string>

#include "tests/soak/training.h"

namespace longhaul::soak {

// The bytes of each file below a directory, by its path relative to it.
std::map<std::string, std::string> contents_below(const std::string& directory);

// "" if they are the same, else what happened to a file.
std::string first_difference(const std::map<std::string, std::string>& before,
                             const std::map<std::string, std::string>& after);

// Files that no training has a right to touch, though the files of its directory may name them: those of a directory
// beside it, whole and damaged checkpoints among them, and ordinary ones in its own directory.
class Bystanders {
 public:
  // `checkpoint`: a whole one to make copies of.
  Bystanders(std::string directory, const std::string& checkpoint);

  // Puts the ordinary ones into the directory of a training that is to begin.
  void join(const std::string& training) const;

  // Fails if one of them is not as it was, or if there is anything beside that directory and the training's that is not
  // the soak's own.
  void check(const std::string& training) const;

  // A line more in checkpoint.retention, or a name more in the state file, that means one of them. As a disk or a
  // person would do it: it says nothing else than before, and is as old. What it was; "" if there is no such file.
  std::string name_in_retention_file(const std::string& training, Random& random) const;
  std::string name_in_state_file(const std::string& training, Random& random) const;

 private:
  std::string some_name(const std::string& training, Random& random) const;

  const std::string directory_;
  std::map<std::string, std::string> contents_;
};

}  // namespace longhaul::soak
