#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"
#include "longhaul/console/board/board_limits.h"
#include "longhaul/console/board/kept_memory.h"
#include "longhaul/console/board/run_events.h"
#include "longhaul/console/board/run_finder.h"
#include "longhaul/console/board/tag_names.h"
#include "longhaul/io/files/file.h"

namespace longhaul::console {

// A step at which a training began again, or to which it went back.
struct RestartMark {
  int64_t step = 0;
  double time = 0;
  std::string what = "began again";
  std::string why{};
};

// How a training stands, in the words of `longhaul status`.
struct RunState {
  std::string state{};                  // TrainingStatus::state
  std::vector<std::string> problems{};  // of TrainingStatus, a few
  std::vector<std::string> notes{};     // the same
};

// A run on the board. Any thread may ask; one looks.
class BoardRun {
 public:
  BoardRun(FileSystem& files, FoundRun found, const Clock& clock)
      : files_(files), found_(std::move(found)), clock_(clock) {}

  // Errors become a problem.
  void look(TagNames& tags, KeptMemory& kept, const std::function<bool()>& go_on) EXCLUDES(mutex_);

  const std::string& name() const { return found_.name; }
  const std::string& directory() const { return found_.directory; }
  std::shared_ptr<RunEvents> events() const EXCLUDES(mutex_);  // null: none was read yet
  std::vector<RestartMark> restarts() const EXCLUDES(mutex_);  // by the journal; without one, by the event files
  std::optional<RunState> state() const EXCLUDES(mutex_);      // nullopt: there are event files alone, or it is gone
  std::vector<std::string> problems() const EXCLUDES(mutex_);
  bool is_gone() const EXCLUDES(mutex_);  // its directory was removed; what was read of it stays

 private:
  void look_at_training() EXCLUDES(mutex_);
  void look_at_journal() EXCLUDES(mutex_);
  void read_events(TagNames& tags, KeptMemory& kept, const std::function<bool()>& go_on) EXCLUDES(mutex_);
  void complain(const std::string& problem, bool is_gone) EXCLUDES(mutex_);

  FileSystem& files_;
  const FoundRun found_;
  const Clock& clock_;
  double journal_at_ = -1;                // when it was written, as far as it was read
  std::optional<Seconds> training_at_{};  // when it was looked at last

  mutable Mutex mutex_;
  std::shared_ptr<RunEvents> events_ GUARDED_BY(mutex_);
  std::vector<RestartMark> marks_ GUARDED_BY(mutex_);
  std::optional<RunState> state_ GUARDED_BY(mutex_);
  bool has_journal_ GUARDED_BY(mutex_) = false;
  std::string problem_ GUARDED_BY(mutex_);
  bool is_gone_ GUARDED_BY(mutex_) = false;
};

// All runs of a board. Their numbers stay while the board lives; only if there are too many, one that is gone gives its
// own to a new one. Any thread may ask; one looks.
class BoardRuns {
 public:
  BoardRuns(FileSystem& files, std::vector<std::string> directories, uint64_t most_kept_bytes = kMostKeptBytes,
            const Clock& clock = Clock::real())
      : files_(files), directories_(std::move(directories)), clock_(clock), kept_(most_kept_bytes) {}

  // Reads what is new, and now and then looks for new runs. `go_on`: asked often; false ends it at once.
  void look(const std::function<bool()>& go_on) EXCLUDES(mutex_);

  const std::vector<std::string>& directories() const { return directories_; }
  const TagNames& tags() const { return tags_; }
  std::vector<std::shared_ptr<BoardRun>> all() const EXCLUDES(mutex_);
  std::vector<std::string> notes() const EXCLUDES(mutex_);
  bool has_looked() const { return has_looked_; }
  FileSystem& files() const { return files_; }

 private:
  void find() EXCLUDES(mutex_);
  void begin_to(const std::string& what) EXCLUDES(mutex_);
  bool add(std::shared_ptr<BoardRun> run) REQUIRES(mutex_);  // false: there is no place
  bool make_room();

  FileSystem& files_;
  const std::vector<std::string> directories_;
  const Clock& clock_;
  TagNames tags_;
  KeptMemory kept_;
  int looks_ = 0;
  std::atomic<bool> has_looked_{false};

  mutable Mutex mutex_;
  std::vector<std::shared_ptr<BoardRun>> runs_ GUARDED_BY(mutex_);
  std::vector<std::string> notes_ GUARDED_BY(mutex_);
  std::string doing_ GUARDED_BY(mutex_);  // "read NAME", since then; empty: nothing
  Seconds doing_since_ GUARDED_BY(mutex_){0};
};

}  // namespace longhaul::console
