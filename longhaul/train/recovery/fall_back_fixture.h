#pragma once

#include <memory>
#include <string>
#include <vector>

#include "longhaul/checkpoint/files/corrupt_set.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/train/recovery/fall_back.h"
#include "longhaul/train/sessions/session_manager_fixture.h"

namespace longhaul {

// A chief that restarts in a directory with three checkpoints, of v = 1, 2 and 3.
class FallBackTest : public SessionManagerTest {
 protected:
  FallBackTest() {
    for (int i = 1; i <= 3; ++i) prefixes.push_back(save(static_cast<float>(i), i));
    restart();
  }
  void lock() { lock_ = std::make_unique<DirectoryLock>(directory.path()); }
  float restored() { return value(*manager().prepare_session(prepare), v); }
  std::vector<std::string> corrupt() {
    std::vector<std::string> names;
    for (const std::string& prefix : corrupt_sets(FileSystem::real(), directory.path())) {
      names.push_back(base_name(prefix));
    }
    return names;
  }
  void write_state(const std::string& text) {
    write_file_atomically(FileSystem::real(), directory.file("checkpoint"), text);
  }

  std::vector<std::string> prefixes;
  std::unique_ptr<DirectoryLock> lock_;
};

}  // namespace longhaul
