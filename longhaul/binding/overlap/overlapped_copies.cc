#include "longhaul/binding/overlap/overlapped_copies.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <system_error>
#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/base/thread.h"
#include "longhaul/binding/overlap/write_watch.h"

namespace longhaul {
namespace {

constexpr Seconds kPatience{1};  // with a copier that gets no processor

void take_lowest_priority() {
  setpriority(PRIO_PROCESS, 0, 19);  // Linux: of this thread alone. It may fail: the copies are right all the same
}

}  // namespace

void OverlappedCopies::copy_during_training(PendingCopy& copy) {
  const auto copy_all = [&copy] {
    while (copy.copy_next()) continue;
  };
  NamedThread copier;
  try {
    copier = NamedThread("lh-copier", [copy_all] {
      take_lowest_priority();
      copy_all();
    });
  } catch (const std::system_error&) {
    return copy_all();  // the system gives no thread
  }
  if (!copy.wait_until_copied(kPatience)) copy_all();
  copier.join();
}

// What one moment leaves to be done.
class OverlappedCopies::Rest : public SnapshotMoment::Rest {
 public:
  Rest(std::shared_ptr<OverlappedCopies> owner, std::shared_ptr<PendingCopy> copy, bool is_proof)
      : owner_(std::move(owner)), copy_(std::move(copy)), is_proof_(is_proof) {}
  ~Rest() override {
    if (copy_ && !is_proof_) owner_->end(copy_);
  }
  Rest(const Rest&) = delete;

  PendingCopy* copy() { return copy_.get(); }

  void close() override {
    copy_->close();
    if (copy_->empty()) {
      copy_.reset();
    } else if (is_proof_) {
      owner_->start_proof(copy_);
    } else {
      owner_->start(copy_);
    }
  }
  bool complete() override {
    if (!copy_ || is_proof_) return true;
    const bool is_right = owner_->complete(copy_);
    owner_->end(std::exchange(copy_, nullptr));
    return is_right;
  }

 private:
  const std::shared_ptr<OverlappedCopies> owner_;
  std::shared_ptr<PendingCopy> copy_;  // null: nothing is left
  const bool is_proof_;
};

OverlappedCopies::~OverlappedCopies() {
  const MutexLock lock(mutex_);
  end_proof();
}

void OverlappedCopies::begin_to_overlap() {
  const MutexLock lock(mutex_);
  state_ = State::kUnproven;
}

PendingCopy* OverlappedCopies::copies_of(SnapshotMoment& moment) {
  if (auto* rest = static_cast<Rest*>(moment.find(this))) return rest->copy();
  const MutexLock lock(mutex_);
  end_proof();  // no step has ended it: the copies are to be made anew, into the memory that it holds
  if (state_ == State::kOff) return nullptr;
  const bool is_proof = state_ == State::kUnproven;
  const auto kind = is_proof ? PendingCopy::Kind::kProof : PendingCopy::Kind::kLater;
  auto copy = std::make_shared<PendingCopy>(kind, turns_++);
  auto rest = std::make_unique<Rest>(shared_from_this(), std::move(copy), is_proof);
  PendingCopy* const to = rest->copy();
  moment.add(this, std::move(rest));
  return to;
}

void OverlappedCopies::start(const std::shared_ptr<PendingCopy>& copy) {
  WriteWatch::of_process().add(copy);
  if (WriteWatch::of_process().works()) {
    const MutexLock lock(mutex_);
    pending_.push_back(copy);
  } else {
    copy->finish();
  }
}

void OverlappedCopies::start_proof(std::shared_ptr<PendingCopy> copy) {
  WriteWatch::of_process().add(copy);
  const bool works = WriteWatch::of_process().works();
  const MutexLock lock(mutex_);
  proof_ = std::move(copy);
  steps_of_proof_ = 0;
  if (works) return;
  end_proof();
  state_ = State::kOff;
  findings_.emplace_back(
      "training waits for the copies of snapshots, because this libtorch does not announce what its operators write");
}

void OverlappedCopies::end_proof() {
  if (proof_) WriteWatch::of_process().remove(std::exchange(proof_, nullptr));
}

// A thread that trains does not do so while it waits for a snapshot, so it copies itself.
bool OverlappedCopies::complete(const std::shared_ptr<PendingCopy>& copy) {
  bool trains = false;
  {
    const MutexLock lock(mutex_);
    trains = trains_ == std::this_thread::get_id();
  }
  if (!trains) copier_(*copy);
  copy->finish();
  std::optional<std::string> problem = copy->problem();
  if (!problem && !WriteWatch::of_process().works()) problem = "libtorch no longer announces what its operators write";
  std::string said;
  {
    const MutexLock lock(mutex_);
    if (state_ == State::kOff) return false;  // another one was wrong
    if (!problem) return true;
    said = turn_off(*problem);
  }
  log_warning("{}", said);
  return false;
}

std::string OverlappedCopies::turn_off(const std::string& why) {
  state_ = State::kOff;
  return fmt::format(
      "{} while a snapshot was to be copied during the next step, so training waits for the copies of snapshots from "
      "now on, as with TorchTrainingOptions::overlap_snapshots = false. Nothing wrong was saved. Not announced are "
      "writes through data_ptr(), by operators whose schema does not declare them, and under a "
      "DisableRecordFunctionGuard; use libtorch's operators (copy_, clamp_), or set the option to false",
      why);
}

void OverlappedCopies::end(const std::shared_ptr<PendingCopy>& copy) {
  WriteWatch::of_process().remove(copy);
  const MutexLock lock(mutex_);
  std::erase(pending_, copy);
}

std::vector<std::shared_ptr<PendingCopy>> OverlappedCopies::pending() {
  const MutexLock lock(mutex_);
  return pending_;
}

void OverlappedCopies::finish() {
  for (const auto& copy : pending()) copy->finish();
}

void OverlappedCopies::begin_step() {
  if (!WriteWatch::hears_this_thread()) finish();
}

void OverlappedCopies::end_step() {
  const MutexLock lock(mutex_);
  trains_ = std::this_thread::get_id();
  if (!proof_) return;
  if (proof_->was_written() || proof_->samples_changed()) return judge_proof();
  if (++steps_of_proof_ == kStepsOfProof) end_proof();
}

void OverlappedCopies::judge_proof() {
  proof_->finish();
  const std::optional<std::string> problem = proof_->problem();
  end_proof();
  if (problem) {
    findings_.push_back(turn_off(*problem));
  } else {
    state_ = State::kProven;
  }
}

void OverlappedCopies::abandon_step() {
  const MutexLock lock(mutex_);
  end_proof();
}

std::vector<std::string> OverlappedCopies::take_findings() {
  const MutexLock lock(mutex_);
  return std::exchange(findings_, {});
}

}  // namespace longhaul
