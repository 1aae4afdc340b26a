#include "longhaul/base/cancellation.h"

#include "longhaul/base/error.h"

namespace longhaul {

// The watch is called with the lock of the whole, which guards what it reads.
Cancellation::Cancellation(Cancellation* whole) {
  end_of_whole_ =
      std::make_unique<Watch>(*whole, [this, whole]() NO_THREAD_SAFETY_ANALYSIS { end(whole->why_, whole->aborted_); });
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
