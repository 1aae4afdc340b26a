#include "longhaul/train/saving/save_history.h"

#include <utility>

#include "longhaul/base/deadline.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"

namespace longhaul {

SaveHistory::UnderWay::UnderWay(SaveHistory& saves) : saves_(saves) {
  MutexLock lock(saves_.mutex_);
  ++saves_.under_way_;
}

SaveHistory::UnderWay::~UnderWay() {
  MutexLock lock(saves_.mutex_);
  if (--saves_.under_way_ == 0) saves_.idle_.notify_all();
}

bool SaveHistory::wait_until_idle(Seconds timeout, const Deadline* deadline) const {
  const Deadline::Wait wait(deadline, mutex_, idle_);
  MutexLock lock(mutex_);
  const Seconds end = clock_.now() + timeout;
  const auto left = [&] { return wait.at_most(end - clock_.now()); };
  // wait: for a save that is under way, for the caller's timeout
  while (under_way_ > 0 && left() > Seconds{0}) clock_.wait_for(idle_, mutex_, left());
  return under_way_ == 0;
}

void SaveHistory::note_restored(const std::string& prefix, double committed_at) {
  MutexLock lock(mutex_);
  last_ = prefix;
  committed_at_ = committed_at;
  last_is_listed_ = is_as_restored_ = true;
  note_step(split_step(prefix).step);
}

void SaveHistory::note_saved(SaveReport report, bool is_listed, double committed_at) {
  MutexLock lock(mutex_);
  last_ = report.prefix;
  committed_at_ = committed_at;
  last_is_listed_ = is_listed;
  is_as_restored_ = false;
  note_step(report.step);
  last_report_ = std::move(report);
}

void SaveHistory::forget() {
  MutexLock lock(mutex_);
  last_.clear();
  is_as_restored_ = step_has_moved_ = false;
  first_step_.reset();
}

void SaveHistory::note_step(std::optional<int64_t> step) {
  if (!first_step_) first_step_ = step;
  if (step != first_step_) step_has_moved_ = true;
}

bool SaveHistory::is_first_step(int64_t step) const {
  MutexLock lock(mutex_);
  return step == first_step_ && !step_has_moved_ && !has_warned_;
}

void SaveHistory::has_warned() {
  MutexLock lock(mutex_);
  has_warned_ = true;
}

bool SaveHistory::is_first_replacement() {
  MutexLock lock(mutex_);
  return !std::exchange(was_replaced_, true);
}

double SaveHistory::committed_at() const {
  MutexLock lock(mutex_);
  return committed_at_;
}

std::shared_ptr<const SavedCallback> SaveHistory::on_saved(SavedCallback callback) {
  auto kept = std::make_shared<const SavedCallback>(std::move(callback));
  MutexLock lock(mutex_);
  std::erase_if(callbacks_, [](const auto& other) { return other.expired(); });
  callbacks_.push_back(kept);
  return kept;
}

void SaveHistory::tell(const std::string& prefix) const {
  std::vector<std::weak_ptr<const SavedCallback>> callbacks;
  {
    MutexLock lock(mutex_);
    callbacks = callbacks_;
  }
  for (const auto& callback : callbacks) {
    if (const auto kept = callback.lock()) (*kept)(prefix);
  }
}

std::string SaveHistory::last() const {
  MutexLock lock(mutex_);
  return last_;
}

bool SaveHistory::last_is_listed() const {
  MutexLock lock(mutex_);
  return last_is_listed_;
}

std::optional<SaveReport> SaveHistory::last_report() const {
  MutexLock lock(mutex_);
  return last_report_;
}

bool SaveHistory::is_as_restored() const {
  MutexLock lock(mutex_);
  return is_as_restored_;
}

}  // namespace longhaul
