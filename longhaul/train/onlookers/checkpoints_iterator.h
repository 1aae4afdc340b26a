#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "longhaul/io/files/file.h"
#include "longhaul/train/coordination/coordinator.h"

namespace longhaul {

struct CheckpointsIteratorOptions {
  Seconds min_interval_secs{0};        // from one checkpoint to the next, at least
  std::optional<Seconds> timeout{};    // the longest wait for a new checkpoint; absent: as long as there is a chief
  std::function<bool()> timeout_fn{};  // called after a timeout: true ends the iteration, false waits once more

  // Longhaul's own; TensorFlow's names end here.

  // How long a training whose chief is gone (killed, preempted, not started yet) is waited for.
  Seconds chief_timeout{3600};
  // How long a checkpoint that is being read is spared if the trainer cannot see this process, because it is on another
  // machine: CheckpointPinOptions::lasts. 0: checkpoints are not pinned.
  Seconds pin_secs{3600};
  // A stop of it ends the iteration: for StopSignals, and for a thread of the training program. Has the clock.
  Coordinator coord{};
  FileSystem* files = &FileSystem::real();
};

// A checkpoint that checkpoints_iterator() hands out. It is pinned until the next one is requested.
struct NewCheckpoint {
  std::string prefix{};           // "runs/net/model.ckpt-200"
  std::optional<int64_t> step{};  // nullopt: the name has none
  bool is_pinned = false;         // false: it could not be pinned, as a warning has said, or was not to be

  operator const std::string&() const { return prefix; }  // as in TensorFlow, where it is the path alone
};

enum class IterationEnd {
  kNotYet,         // it has not ended
  kTrainingEnded,  // the training has ended, and its last checkpoint was handed out
  kTimeout,        // CheckpointsIteratorOptions::timeout, and timeout_fn agreed
  kNoChief,        // chief_timeout
  kStopped,        // a stop was requested
};

// The checkpoints of a training that other processes, or other threads, run in a directory, as they appear. See
// checkpoints_iterator(). One thread at a time.
class CheckpointsIterator {
 public:
  // InvalidArgumentError: a time is negative or not a number; pin_secs is more than a day.
  CheckpointsIterator(std::string directory, CheckpointsIteratorOptions options);
  ~CheckpointsIterator();
  CheckpointsIterator(CheckpointsIterator&&) noexcept;

  // Releases the last checkpoint, and waits for the next. nullptr: the iteration has ended. The result is valid until
  // the next call.
  const NewCheckpoint* next();
  IterationEnd ended_by() const;

  class Position {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = NewCheckpoint;
    using difference_type = std::ptrdiff_t;
    explicit Position(CheckpointsIterator& of) : of_(&of), current_(of.next()) {}
    const NewCheckpoint& operator*() const { return *current_; }
    const NewCheckpoint* operator->() const { return current_; }
    Position& operator++() {
      current_ = of_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return current_ == nullptr; }

   private:
    CheckpointsIterator* of_;
    const NewCheckpoint* current_;
  };
  Position begin() { return Position(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  class Follower;
  std::unique_ptr<Follower> follower_;
};

// Follows a directory: hands out its newest checkpoint, then each newer one. For a program that evaluates or exports
// while another one trains.
//
//   for (const NewCheckpoint& checkpoint : checkpoints_iterator("runs/net")) {
//     write_checkpoint_metric(checkpoint, metric_of(checkpoint));   // the trainer keeps the best
//   }
//
// It looks for new checkpoints only when it is asked for the next: if the loop takes longer than the trainer between
// two checkpoints, some are skipped, and always the newest is handed out. While the loop's body runs, the checkpoint is
// pinned, so that no trainer that knows pins deletes it (reader_notes.h); one that was deleted before it could be
// pinned is skipped, and the log says so. It may be damaged: reading it then throws DataLossError.
//
// The iteration ends when the training has ended and its last checkpoint was handed out: the directory's journal says
// so, and the directory has no chief. A training that was preempted, killed, or has died of an error, may be started
// again, so that is no end; nor is a directory that does not exist yet. Then a warning says who is missing, and the
// wait ends after chief_timeout. ended_by() says which end it was.
//
// While it waits, the system reports changes in the directory (DirectoryWatch). It also looks every ten seconds,
// because network file systems do not report changes, and a killed chief makes none.
CheckpointsIterator checkpoints_iterator(const std::string& directory, CheckpointsIteratorOptions options = {});

}  // namespace longhaul
