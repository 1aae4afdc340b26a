#pragma once

#include <memory>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/files/file.h"

namespace longhaul {

// Held while the retention file (retention_file.h) is read, changed and replaced, so that of two changes at the same
// time none is lost: a file of its own next to it, locked by flock(2). On file systems without locks it holds off
// nobody. Never throws an Error: who may not fail continues without it. One thread may use it.
class RetentionLock {
 public:
  enum class State {
    kHeld,
    kTaken,        // somebody else has it, and had it for `longest`
    kUnsupported,  // the file system has no locks
    kFailed,       // the file cannot be made or locked
  };

  // Waits for at most `longest` on that clock.
  RetentionLock(FileSystem& files, Clock& clock, const std::string& directory, Seconds longest,
                const std::string& latest_filename = kDefaultStateFile);

  State state() const { return state_; }
  const std::string& path() const { return path_; }
  const std::string& why() const { return why_; }  // of kTaken and kFailed, for messages

 private:
  void try_once(FileSystem& files);

  const std::string path_;
  State state_ = State::kTaken;
  std::string why_;
  std::unique_ptr<FileLock> lock_;
};

}  // namespace longhaul
