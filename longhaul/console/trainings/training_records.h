#pragma once

#include <optional>
#include <string>
#include <vector>

#include "longhaul/io/files/file.h"
#include "longhaul/io/lock/owner_record.h"
#include "longhaul/train/journal/run_history.h"

namespace longhaul::console {

// The chief of a directory, by its owner record.
struct ChiefRecord {
  enum class State {
    kNone,    // nobody has the directory
    kAlive,   // a process of this machine that runs, or one elsewhere with a recent heartbeat
    kSilent,  // elsewhere, and without a heartbeat for longer than its limit
    kDead,    // a process of this machine that has ended without giving the directory back: it was killed
  };
  State state = State::kNone;
  std::optional<OwnerRecord> owner{};
  bool is_held = false;     // alive, but stopped as a whole: by a SIGSTOP, or by a debugger
  double heartbeat_at = 0;  // by the clock of the file system
  std::string problem{};    // why the record could not be read; empty: it could
};
ChiefRecord chief_of(FileSystem& files, const std::string& directory, double now);

// The journal of a directory. Nothing is written.
struct JournalRecord {
  bool is_there = false;
  RunHistory history{};            // with the fatal signal that the crash record has
  std::vector<RunEvent> events{};  // of the newest run, since the journal was last replaced
  int damaged_lines = 0;
  std::string problem{};  // why it could not be read; empty: it could
};
JournalRecord journal_of(FileSystem& files, const std::string& directory);

}  // namespace longhaul::console
