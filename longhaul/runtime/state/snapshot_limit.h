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

// Enforces SessionOptions::snapshot_memory. A step whose updates would leave more old buffers than that to snapshots
// waits, outside the gate and without holding a lock or a variable, until enough are released. If none is released for
// `longest_wait`, the step continues and exceeds the limit, and the log says so.
//
// Without a limit, or while there is no snapshot, a step checks only one flag. Any thread. Must be owned by a
// shared_ptr.
class SnapshotLimit : public std::enable_shared_from_this<SnapshotLimit> {
 public:
  static constexpr Seconds kLongestWait{600};

  SnapshotLimit(VariableMemory memory, std::optional<uint64_t> limit, Seconds longest_wait = kLongestWait)
      : memory_(std::move(memory)), limit_(limit), longest_wait_(longest_wait) {}

  // One snapshot. It begins before the variables are read, and ends when this object and the values given to hold() are
  // destroyed; if training waited for it, the log then says how long.
  class Snapshot {
   public:
    explicit Snapshot(std::shared_ptr<SnapshotLimit> limit);
    ~Snapshot();
    Snapshot(const Snapshot&) = delete;

    // Sets the values that the snapshot holds: `snapshot` releases one when the tensor that replaces it is destroyed.
    static void hold(std::shared_ptr<Snapshot> snapshot, std::vector<Tensor>* values);

   private:
    class Value;

    const std::shared_ptr<SnapshotLimit> limit_;
    bool taken_ = false;
  };

  // nullptr: no limit, or one that copies of all variables would not exceed.
  std::shared_ptr<Snapshot> begin();

  // A step's stay inside the gate, with room for updates of these variables. DeadlineExceededError: it had to wait
  // beyond `deadline`, on the real clock (0: none). `step`: as StepGate::enter().
  class Entry {
   public:
    Entry(StepGate& gate, SnapshotLimit& limit, std::span<VariableSlot* const> variables, Seconds deadline,
          uint64_t step = 0);
    ~Entry();
    Entry(const Entry&) = delete;

   private:
    void wait_for_room(std::span<VariableSlot* const> variables, Seconds deadline);

    StepGate& gate_;
    SnapshotLimit& limit_;
    const uint64_t step_;
    uint64_t reserved_ = 0;
  };

  // Buffers were released, whoever held them: waiting steps check again. The caller may hold a variable's lock.
  void memory_released();

  // The session ends: all waits end.
  void close();

 private:
  uint64_t changes();
  uint64_t bytes_to_copy(std::span<VariableSlot* const> variables);
  bool reserve(uint64_t bytes);  // false: there is no room
  void wait_for_change(uint64_t seen, Seconds deadline);
  void note_wait(Seconds duration);
  bool changes_in_time(uint64_t seen, Seconds deadline);  // false: no change for `longest_wait`
  std::string report_of_waits() REQUIRES(mutex_);         // empty: there were none
  void changed() REQUIRES(mutex_);

  const VariableMemory memory_;
  const std::optional<uint64_t> limit_;
  const Seconds longest_wait_;
  std::atomic<bool> in_force_{false};  // there is a snapshot, and a limit for it

  Mutex mutex_;
  CondVar changed_;
  int snapshots_ GUARDED_BY(mutex_) = 0;
  int being_taken_ GUARDED_BY(mutex_) = 0;                        // snapshots before hold(): they may hold any value
  std::unordered_map<const void*, int> held_ GUARDED_BY(mutex_);  // how many snapshots hold the buffer there
  uint64_t reserved_ GUARDED_BY(mutex_) = 0;                      // bytes
  uint64_t changes_ GUARDED_BY(mutex_) = 0;                       // of all these
  bool overdue_ GUARDED_BY(mutex_) = false;                       // a wait was in vain
  bool closed_ GUARDED_BY(mutex_) = false;
  int waits_ GUARDED_BY(mutex_) = 0;  // of steps, since there were no snapshots, and their total time
  Seconds waited_ GUARDED_BY(mutex_){0};
};

}  // namespace longhaul
