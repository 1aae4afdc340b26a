#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "longhaul/io/files/directory_watch.h"
#include "longhaul/io/files/file.h"
#include "longhaul/train/coordination/coordinator.h"

namespace longhaul {

// Whether it exists; false also if the system cannot tell.
bool is_directory(FileSystem& files, const std::string& directory);

// Whether something has changed in a directory that need not exist yet: a DirectoryWatch of it, or of the nearest one
// above it. The heartbeats of its chief are no news. One thread at a time.
class DirectoryNews {
 public:
  // A stop of `coord` ends waits.
  DirectoryNews(std::string directory, Coordinator coord);

  void forget(FileSystem& files);  // what changes from now on is news
  void add() { has_some_ = true; }
  // Waits for news, a stop, or this time on the coordinator's clock.
  void wait(Seconds until);

 private:
  void note(const DirectoryChange& change);
  std::string nearest(FileSystem& files) const;

  const std::string directory_;
  const Coordinator coord_;
  std::string watched_;
  std::atomic<bool> has_some_{false};
  std::unique_ptr<DirectoryWatch> watch_;  // the last member: its thread uses the others
};

}  // namespace longhaul
