#include "longhaul/base/cancellation.h"

#include "longhaul/base/error.h"

namespace longhaul {

void Cancellation::cancel(const std::string& why) {
  MutexLock lock(mutex_);
  if (cancelled_) return;
  cancelled_ = true;
  why_ = why;
  for (const auto& [id, wake] : watches_) wake();
}

bool Cancellation::cancelled() const {
  MutexLock lock(mutex_);
  return cancelled_;
}

void Cancellation::check() const {
  MutexLock lock(mutex_);
  if (cancelled_) throw CancelledError(why_);
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
