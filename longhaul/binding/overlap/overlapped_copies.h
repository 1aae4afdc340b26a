#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/binding/overlap/pending_copy.h"
#include "longhaul/runtime/state/snapshot_moment.h"

namespace longhaul {

// Copies the values that one binding has in snapshots while it continues to train, and sees to it that a copy that may
// be wrong is not used.
//
//   unproven --a step whose writes were all announced--> proven          both --a write was not--> off
//
// Unproven, snapshots are copied at once, and the step after one is compared with it: each tensor when its first write
// is announced, or when the step ends. Proven, snapshots come later. Each is checked by samples, and a few pieces in
// turn as in a proof. If one is wrong, it is read again while training waits; so are all later ones (off), and the log
// names the tensor. Any thread may call; the steps are one thread's at a time. Must be owned by a shared_ptr.
class OverlappedCopies : public std::enable_shared_from_this<OverlappedCopies> {
 public:
  // Copies all pieces, and returns when that is done. Called on the thread that asked for the snapshot.
  using Copier = std::function<void(PendingCopy&)>;
  explicit OverlappedCopies(Copier copier = copy_during_training) : copier_(std::move(copier)) {}
  ~OverlappedCopies();
  OverlappedCopies(const OverlappedCopies&) = delete;

  // On a thread of the lowest priority, so that no step has to share its processor. If that gets nowhere, on the
  // caller's as well.
  static void copy_during_training(PendingCopy& copy);

  // Without it, all is copied at once.
  void begin_to_overlap() EXCLUDES(mutex_);

  // Inside the gate: where copies are added that need not be made at once; nullptr: make them. Valid until the moment
  // is closed.
  PendingCopy* copies_of(SnapshotMoment& moment) EXCLUDES(mutex_);

  void begin_step() EXCLUDES(mutex_);
  void end_step() EXCLUDES(mutex_);
  void abandon_step() EXCLUDES(mutex_);  // it threw
  // Before values are assigned: completes what is pending.
  void finish() EXCLUDES(mutex_);

  // What end_step() found since the last call, as text.
  std::vector<std::string> take_findings() EXCLUDES(mutex_);

 private:
  class Rest;
  enum class State : uint8_t { kOff, kUnproven, kProven };
  static constexpr int kStepsOfProof = 100;  // without a write: it is given up, and made after the next snapshot

  void start(const std::shared_ptr<PendingCopy>& copy) EXCLUDES(mutex_);
  void start_proof(std::shared_ptr<PendingCopy> copy) EXCLUDES(mutex_);
  bool complete(const std::shared_ptr<PendingCopy>& copy) EXCLUDES(mutex_);
  void end(const std::shared_ptr<PendingCopy>& copy) EXCLUDES(mutex_);
  void end_proof() REQUIRES(mutex_);
  void judge_proof() REQUIRES(mutex_);
  std::vector<std::shared_ptr<PendingCopy>> pending() EXCLUDES(mutex_);
  std::string turn_off(const std::string& why) REQUIRES(mutex_);

  const Copier copier_;
  Mutex mutex_;
  State state_ GUARDED_BY(mutex_) = State::kOff;
  uint64_t turns_ GUARDED_BY(mutex_) = 0;
  std::vector<std::shared_ptr<PendingCopy>> pending_ GUARDED_BY(mutex_);  // those that come later
  std::shared_ptr<PendingCopy> proof_ GUARDED_BY(mutex_);                 // null: none is under way
  int steps_of_proof_ GUARDED_BY(mutex_) = 0;
  std::thread::id trains_ GUARDED_BY(mutex_);  // who made the last step
  std::vector<std::string> findings_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
