#include "longhaul/train/checkpointing/mirror_queue.h"

#include <algorithm>
#include <utility>

#include "longhaul/base/error.h"

namespace longhaul {

void MirrorQueue::add(const std::string& prefix) {
  MutexLock lock(mutex_);
  wanted_ = prefix;
  is_replaced_ = true;
  changed_.notify_all();
}

std::string MirrorQueue::next() {
  constexpr Seconds kLong{3600};
  MutexLock lock(mutex_);
  while (!is_abandoned_) {
    const Seconds pause = wanted_.empty() ? kLong : attempts_.time_to_retry();
    if (wanted_.empty() && is_finishing_) break;
    const bool is_first_at_end = is_finishing_ && !std::exchange(is_tried_at_end_, true);
    if (pause <= Seconds{0} || is_first_at_end) {
      is_replaced_ = is_paused_at_end_ = false;
      return wanted_;
    }
    if (is_finishing_ && !std::exchange(is_paused_at_end_, true)) changed_.notify_all();
    clock_.wait_for(changed_, mutex_, pause);  // wait: until the next retry; add(), finish() and abandon() end it
  }
  return "";
}

std::string MirrorQueue::finish(Seconds timeout, const Deadline* deadline) {
  const Deadline::Wait wait(deadline, mutex_, changed_);
  MutexLock lock(mutex_);
  is_finishing_ = true;
  changed_.notify_all();
  const Seconds end = clock_.now() + timeout;
  const auto half = half_time(deadline, clock_);
  const auto left = [&] { return std::min(end, half().value_or(end)) - clock_.now(); };
  while (!wanted_.empty() && !is_abandoned_ && left() > Seconds{0}) {
    if (is_paused_at_end_ && attempts_.time_to_retry() > left()) break;  // the retry would come too late
    clock_.wait_for(changed_, mutex_, left());  // wait: for the last copy, for the caller's timeout
  }
  is_abandoned_ = true;
  changed_.notify_all();
  return wanted_;
}

bool MirrorQueue::pause(Seconds time) {
  MutexLock lock(mutex_);
  // wait: for a rate limit; finish() and abandon() end it
  if (time > Seconds{0} && !is_abandoned_) clock_.wait_for(changed_, mutex_, time);
  if (is_abandoned_) throw CancelledError("the mirror is closed");
  return true;
}

void MirrorQueue::drop(const std::string& prefix) {
  MutexLock lock(mutex_);
  if (wanted_ == prefix && !is_replaced_) wanted_.clear();
  changed_.notify_all();
}

void MirrorQueue::abandon() {
  MutexLock lock(mutex_);
  is_abandoned_ = true;
  changed_.notify_all();
}

}  // namespace longhaul
