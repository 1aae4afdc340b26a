#include "longhaul/runtime/state/snapshot_limit.h"

#include <algorithm>
#include <utility>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/base/no_steps_expected.h"
#include "longhaul/base/waiting.h"
#include "longhaul/runtime/state/step_gate.h"
#include "longhaul/runtime/state/variable_store.h"

namespace longhaul {

std::shared_ptr<SnapshotLimit::Snapshot> SnapshotLimit::begin() {
  if (!limit_ || memory_.bytes_of_variables() + memory_.bytes_beyond() <= *limit_) return nullptr;
  return std::make_shared<Snapshot>(shared_from_this());
}

SnapshotLimit::Snapshot::Snapshot(std::shared_ptr<SnapshotLimit> limit) : limit_(std::move(limit)) {
  const MutexLock lock(limit_->mutex_);
  ++limit_->snapshots_;
  ++limit_->being_taken_;
  limit_->in_force_.store(true);
}

SnapshotLimit::Snapshot::~Snapshot() {
  std::string report;
  {
    const MutexLock lock(limit_->mutex_);
    if (!taken_) --limit_->being_taken_;
    if (--limit_->snapshots_ == 0) limit_->in_force_.store(false);
    limit_->changed();
    if (limit_->snapshots_ == 0) report = limit_->report_of_waits();
  }
  if (!report.empty()) log_info("{}", report);
}

std::string SnapshotLimit::report_of_waits() {
  if (waits_ == 0) return "";
  return fmt::format(
      "{} training steps waited for a checkpoint to be written, for a total of {:.3f} s, because snapshot_memory is {} "
      "bytes",
      std::exchange(waits_, 0), std::exchange(waited_, Seconds{0}).count(), *limit_);
}

// A value that a snapshot holds.
class SnapshotLimit::Snapshot::Value {
 public:
  Value(std::shared_ptr<Snapshot> snapshot, Tensor tensor)
      : snapshot_(std::move(snapshot)), place_(tensor.data()), tensor_(std::move(tensor)) {
    const MutexLock lock(snapshot_->limit_->mutex_);
    ++snapshot_->limit_->held_[place_];
  }
  ~Value() {
    tensor_ = Tensor();  // outside the lock, and before anybody looks
    SnapshotLimit& limit = *snapshot_->limit_;
    const MutexLock lock(limit.mutex_);
    if (const auto it = limit.held_.find(place_); --it->second == 0) limit.held_.erase(it);
    limit.changed();
  }
  Value(const Value&) = delete;

 private:
  const std::shared_ptr<Snapshot> snapshot_;
  const void* const place_;
  Tensor tensor_;
};

void SnapshotLimit::Snapshot::hold(std::shared_ptr<Snapshot> snapshot, std::vector<Tensor>* values) {
  for (Tensor& tensor : *values) {
    if (!tensor.defined() || tensor.size_bytes() < VariableMemory::kSmallest) continue;
    const void* place = tensor.data();
    const DType dtype = tensor.dtype();
    Shape shape = tensor.shape();
    tensor = Tensor::wrap(dtype, std::move(shape), place, std::make_shared<Value>(snapshot, std::move(tensor)));
  }
  const MutexLock lock(snapshot->limit_->mutex_);
  snapshot->taken_ = true;
  --snapshot->limit_->being_taken_;
  snapshot->limit_->changed();
}

SnapshotLimit::Entry::Entry(StepGate& gate, SnapshotLimit& limit, std::span<VariableSlot* const> variables,
                            Seconds deadline, uint64_t step)
    : gate_(gate), limit_(limit), step_(step) {
  const bool is_made = gate_.is_ahead();  // by the program: only its number is missing, and it cannot leave before
  gate_.enter(deadline, step);
  if (!is_made && limit_.in_force_.load(std::memory_order_relaxed)) wait_for_room(variables, deadline);
}

SnapshotLimit::Entry::~Entry() {
  gate_.leave();
  if (reserved_ == 0) return;
  const MutexLock lock(limit_.mutex_);
  limit_.reserved_ -= reserved_;
  limit_.changed();
}

void SnapshotLimit::Entry::wait_for_room(std::span<VariableSlot* const> variables, Seconds deadline) {
  const Seconds start = Clock::real().now();
  for (bool waited = false;; waited = true) {
    const uint64_t seen = limit_.changes();
    const uint64_t bytes = limit_.bytes_to_copy(variables);
    if (limit_.reserve(bytes)) {
      reserved_ = bytes;
      if (waited) limit_.note_wait(Clock::real().now() - start);
      return;
    }
    gate_.leave();
    limit_.wait_for_change(seen, deadline);
    gate_.enter(deadline, step_);
  }
}

void SnapshotLimit::note_wait(Seconds duration) {
  const MutexLock lock(mutex_);
  ++waits_;
  waited_ += duration;
}

uint64_t SnapshotLimit::changes() {
  const MutexLock lock(mutex_);
  return changes_;
}

// Of what a snapshot holds. While the caller is inside the gate, no new one can hold more.
uint64_t SnapshotLimit::bytes_to_copy(std::span<VariableSlot* const> variables) {
  uint64_t bytes = 0;
  for (const VariableSlot* variable : variables) {
    const auto [place, size] = variable->held_buffer();
    if (place == nullptr) continue;
    const MutexLock lock(mutex_);
    if (being_taken_ > 0 || held_.contains(place)) bytes += size;
  }
  return bytes;
}

bool SnapshotLimit::reserve(uint64_t bytes) {
  const MutexLock lock(mutex_);
  const bool fits = memory_.bytes_beyond() + reserved_ + bytes <= *limit_;
  if (bytes > 0 && !fits && !overdue_ && !closed_) return false;
  reserved_ += bytes;
  return true;
}

void SnapshotLimit::wait_for_change(uint64_t seen, Seconds deadline) {
  if (changes_in_time(seen, deadline)) return;
  log_warning("A checkpoint has not released any variable for {} s; training continues and exceeds snapshot_memory",
              longest_wait_.count());
}

bool SnapshotLimit::changes_in_time(uint64_t seen, Seconds deadline) {
  const Seconds start = Clock::real().now();
  const NoStepsExpected waiting(longest_wait_);
  const Waiting noted("memory that a checkpoint uses (snapshot_memory)");
  const MutexLock lock(mutex_);
  while (changes_ == seen && !overdue_ && !closed_) {
    const Seconds now = Clock::real().now();
    if (deadline.count() > 0 && now > deadline) {
      throw DeadlineExceededError("a step timed out while it waited for a checkpoint that uses all of snapshot_memory");
    }
    if (now - start > longest_wait_) {
      overdue_ = true;
      changed_.notify_all();
      return false;
    }
    const Seconds until = deadline.count() > 0 ? std::min(deadline, start + longest_wait_) : start + longest_wait_;
    changed_.wait_for(mutex_, until - now);  // wait: for room, for longest_wait_ or the run's time
  }
  return true;
}

void SnapshotLimit::changed() {
  ++changes_;
  overdue_ = false;
  changed_.notify_all();
}

void SnapshotLimit::memory_released() {
  if (!in_force_.load()) return;
  const MutexLock lock(mutex_);
  changed();
}

void SnapshotLimit::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace longhaul
