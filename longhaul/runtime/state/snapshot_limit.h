#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/runtime/memory/variable_memory.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

class StepGate;
class VariableSlot;

// Keeps to SessionOptions::snapshot_memory. A step whose updates would leave more old buffers to the snapshots than
// that waits, outside the gate, where it holds no lock and no variable, until they have let go of enough. If nothing is
// let go for `longest_wait`, the step goes on and exceeds the limit, and the log says so.
//
// Without a limit, or while nobody has a snapshot, a step looks at one flag. Any thread. It lives in a shared_ptr.
class SnapshotLimit : public std::enable_shared_from_this<SnapshotLimit> {
 public:
  static constexpr Seconds kLongestWait{600};

  SnapshotLimit(VariableMemory memory, std::optional<uint64_t> limit, Seconds longest_wait = kLongestWait)
      : memory_(std::move(memory)), limit_(limit), longest_wait_(longest_wait) {}

  // One snapshot. It begins before the variables are read, and ends when this object and the values given to hold() are
  // gone; if training has waited for it, the log then says how long.
  class Snapshot {
   public:
    explicit Snapshot(std::shared_ptr<SnapshotLimit> limit);
    ~Snapshot();
    Snapshot(const Snapshot&) = delete;

    // Says which values the snapshot holds: `snapshot` lets go of one when the tensor that takes its place is dropped.
    static void hold(std::shared_ptr<Snapshot> snapshot, std::vector<Tensor>* values);

   private:
    class Value;

    const std::shared_ptr<SnapshotLimit> limit_;
    bool taken_ = false;
  };

  // nullptr: there is no limit that copies of all variables would exceed.
  std::shared_ptr<Snapshot> begin();

  // A step's stay inside the gate, with room for updates of these variables.
  // DeadlineExceededError: it had to wait for longer than until `deadline`, of the real clock (0: none).
  class Entry {
   public:
    Entry(StepGate& gate, SnapshotLimit& limit, std::span<VariableSlot* const> variables, Seconds deadline);
    ~Entry();
    Entry(const Entry&) = delete;

   private:
    void wait_for_room(std::span<VariableSlot* const> variables, Seconds deadline);

    StepGate& gate_;
    SnapshotLimit& limit_;
    uint64_t reserved_ = 0;
  };

  // Tensors have let go of buffers, whoever had them: a step that waits looks again. The caller may hold a variable's
  // lock.
  void memory_released();

  // The session ends: nobody waits any more.
  void close();

 private:
  uint64_t changes();
  uint64_t bytes_to_copy(std::span<VariableSlot* const> variables);
  bool reserve(uint64_t bytes);  // false: there is no room
  void wait_for_change(uint64_t seen, Seconds deadline);
  void note_wait(Seconds duration);
  bool changes_in_time(uint64_t seen, Seconds deadline);  // false: nothing did for `longest_wait`
  std::string report_of_waits() REQUIRES(mutex_);         // empty: there were none
  void changed() REQUIRES(mutex_);

  const VariableMemory memory_;
  const std::optional<uint64_t> limit_;
  const Seconds longest_wait_;
  std::atomic<bool> in_force_{false};  // there is a snapshot, and a limit for it

  Mutex mutex_;
  CondVar changed_;
  int snapshots_ GUARDED_BY(mutex_) = 0;
  int being_taken_ GUARDED_BY(mutex_) = 0;  // those that have not said yet which values they hold: any may be theirs
  std::unordered_map<const void*, int> held_ GUARDED_BY(mutex_);  // how many snapshots hold the buffer at that place
  uint64_t reserved_ GUARDED_BY(mutex_) = 0;                      // bytes
  uint64_t changes_ GUARDED_BY(mutex_) = 0;                       // of all these
  bool overdue_ GUARDED_BY(mutex_) = false;                       // waited for in vain
  bool closed_ GUARDED_BY(mutex_) = false;
  int waits_ GUARDED_BY(mutex_) = 0;  // of steps, since there were no snapshots; and how long they took in all
  Seconds waited_ GUARDED_BY(mutex_){0};
};

}  // namespace longhaul
