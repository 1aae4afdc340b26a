#include "longhaul/base/cancellation.h"

#include "longhaul/base/error.h"

namespace longhaul {

Cancellation::Cancellation(Cancellation* whole, Cancellation* other)
    : end_of_whole_(end_with(whole)), end_of_other_(other != nullptr ? end_with(other) : nullptr) {}

// The watch is called with the lock of the other, which guards what it reads.
std::unique_ptr<Cancellation::Watch> Cancellation::end_with(Cancellation* other) {
  return std::make_unique<Watch>(*other,
                                 [this, other]() NO_THREAD_SAFETY_ANALYSIS { end(other->why_, other->aborted_); });
}

void Cancellation::end(const std::string& why, bool aborted) {
  MutexLock lock(mutex_);
  if (cancelled_) return;
  cancelled_ = true;
  aborted_ = aborted;
  why_ = why;
  for (const auto& [id, wake] : watches_) wake();
}

bool Cancellation::cancelled() const {
  MutexLock lock(mutex_);
  return cancelled_;
}

void Cancellation::check() const {
  MutexLock lock(mutex_);
  if (aborted_) throw AbortedError(why_);
  if (cancelled_) throw CancelledError(why_);
}

void Cancellation::check_aborted() const {
  MutexLock lock(mutex_);
  if (aborted_) throw AbortedError(why_);
}

Cancellation::Watch::Watch(Cancellation& cancellation, std::function<void()> wake) : cancellation_(cancellation) {
  MutexLock lock(cancellation_.mutex_);
  if (cancellation_.cancelled_) wake();
  id_ = cancellation_.next_id_++;
  cancellation_.watches_.emplace(id_, std::move(wake));
}

Cancellation::Watch::~Watch() {
  MutexLock lock(cancellation_.mutex_);
  cancellation_.watches_.erase(id_);
}

}  // namespace longhaul
