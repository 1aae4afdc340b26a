#include "longhaul/base/deadline.h"

#include <algorithm>

namespace longhaul {

void Deadline::bring_forward(Seconds time) {
  const double at = (clock_.now() + time).count();
  double before = at_.load();
  while (at < before && !at_.compare_exchange_weak(before, at)) {
  }
  MutexLock lock(waits_mutex_);
  for (const Wait* wait : waits_) wait->wake();
}

std::optional<Seconds> Deadline::left() const {
  const double at = at_;
  if (at == kNever) return std::nullopt;
  return Seconds{at} - clock_.now();
}

std::function<std::optional<Seconds>()> half_time(const Deadline* deadline, const Clock& clock, Seconds least) {
  const Seconds earliest = clock.now() + least;
  return [deadline, &clock, earliest, since = std::optional<Seconds>()]() mutable -> std::optional<Seconds> {
    const std::optional<Seconds> left = deadline != nullptr ? deadline->left() : std::nullopt;
    if (!left) return std::nullopt;
    const Seconds now = clock.now();
    if (!since) since = now;
    return std::max(earliest, *since + (now - *since + *left) / 2);
  };
}

Deadline::Wait::Wait(const Deadline* deadline, Mutex& mutex, CondVar& changed)
    : deadline_(deadline), mutex_(mutex), changed_(changed) {
  if (deadline_ == nullptr) return;
  MutexLock lock(deadline_->waits_mutex_);
  deadline_->waits_.push_back(this);
}

Deadline::Wait::~Wait() {
  if (deadline_ == nullptr) return;
  MutexLock lock(deadline_->waits_mutex_);
  std::erase(deadline_->waits_, this);
}

// Under its mutex: it has either seen the deadline, or waits for this.
void Deadline::Wait::wake() const {
  MutexLock lock(mutex_);
  changed_.notify_all();
}

Seconds Deadline::Wait::at_most(Seconds time) const {
  return deadline_ == nullptr ? time : std::min(time, deadline_->left().value_or(time));
}

}  // namespace longhaul
