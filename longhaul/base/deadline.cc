#include "longhaul/base/deadline.h"

#include <algorithm>
#include <utility>

namespace longhaul {

void Deadline::bring_forward(Seconds time) {
  const double at = (clock_.now() + time).count();
  double before = at_.load();
  while (at < before && !at_.compare_exchange_weak(before, at)) {
  }
  MutexLock lock(notices_mutex_);
  for (const Notice* notice : notices_) notice->notify_();
}

std::optional<Seconds> Deadline::left() const {
  const double at = at_;
  if (at == kNever) return std::nullopt;
  return Seconds{at} - clock_.now();
}

std::function<std::optional<Seconds>()> half_time(const Deadline* deadline, const Clock& clock, Seconds least,
                                                  Seconds most) {
  const Seconds earliest = clock.now() + least;
  return [deadline, &clock, earliest, most, since = std::optional<Seconds>()]() mutable -> std::optional<Seconds> {
    const std::optional<Seconds> left = deadline != nullptr ? deadline->left() : std::nullopt;
    if (!left) return std::nullopt;
    const Seconds now = clock.now();
    if (!since) since = now;
    return std::max(earliest, *since + std::min(most, (now - *since + *left) / 2));
  };
}

Deadline::Notice::Notice(const Deadline* deadline, std::function<void()> notify)
    : deadline_(deadline), notify_(std::move(notify)) {
  if (deadline_ == nullptr) return;
  MutexLock lock(deadline_->notices_mutex_);
  deadline_->notices_.push_back(this);
}

Deadline::Notice::~Notice() {
  if (deadline_ == nullptr) return;
  MutexLock lock(deadline_->notices_mutex_);
  std::erase(deadline_->notices_, this);
}

// Notified under its mutex: it has either seen the deadline, or waits for this.
Deadline::Wait::Wait(const Deadline* deadline, Mutex& mutex, CondVar& changed)
    : deadline_(deadline), notice_(deadline, [&mutex, &changed] {
        MutexLock lock(mutex);
        changed.notify_all();
      }) {}

Seconds Deadline::Wait::at_most(Seconds time) const {
  return deadline_ == nullptr ? time : std::min(time, deadline_->left().value_or(time));
}

}  // namespace longhaul
