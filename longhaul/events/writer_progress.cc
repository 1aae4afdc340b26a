#include "longhaul/events/writer_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "longhaul/base/deadline.h"

namespace longhaul {

void WriterProgress::begin_to(std::string operation, size_t events) {
  since_ = clock_.now();
  operation_ = std::move(operation);
  events_ = events;
  ++operations_;
  is_given_up_ = is_told_ = false;
}

void WriterProgress::rest() {
  begin_to("", 0);
}

void WriterProgress::limit(const Deadline* deadline, Seconds most) {
  limit_ = deadline;
  limit_left_ = most;
}

bool WriterProgress::wait(const std::function<bool()>& is_done, CondVar& changed, Mutex& mutex,
                          const Deadline* deadline) {
  constexpr Seconds kAFewWrites{1}, kStopped{1}, kNoLimit{std::numeric_limits<double>::infinity()};
  if (is_done()) return true;
  Seconds start = clock_.now(), now = start;
  const auto half = half_time(deadline != nullptr ? deadline : limit_, clock_, kAFewWrites,
                              limit_ != nullptr ? limit_left_ : kNoLimit);
  while (!is_done()) {
    if (is_given_up_) return false;
    const Seconds hangs = (operation_.empty() ? start : since_) + hang_secs_;
    const Seconds end = std::min(hangs, half().value_or(hangs));
    if (now >= end) {
      const bool gets_on = gets_on_in_a_moment(is_done, changed, mutex);
      is_given_up_ = !is_done() && (!gets_on || end < hangs);
      if (is_given_up_) changed.notify_all();  // others are not to wait longer
      continue;
    }
    now = wait_on(now, end, changed, mutex);
    if (now > end + kStopped) since_ = start = now;  // the process was stopped, and the thread with it
  }
  return true;
}

// Returns the time. What passes before the limit is set does not count.
Seconds WriterProgress::wait_on(Seconds now, Seconds end, CondVar& changed, Mutex& mutex) {
  const bool counts = limit_ != nullptr && limit_->is_set();
  clock_.wait_until(changed, mutex, end);  // wait: for the writer thread, which may hang in its file system
  const Seconds after = clock_.now();
  if (counts) limit_left_ = std::max(Seconds{0}, limit_left_ - (after - now));
  return after;
}

// Time may have passed without the thread: the process was stopped before the wait, or a test's clock leaps.
bool WriterProgress::gets_on_in_a_moment(const std::function<bool()>& is_done, CondVar& changed, Mutex& mutex) const {
  constexpr Seconds kMoment{0.1};
  const Seconds end = Clock::real().now() + kMoment;
  const uint64_t before = operations_;
  while (!is_done() && Clock::real().now() < end) {
    changed.wait_for(mutex, end - Clock::real().now());  // wait: the moment that a thread needs to run at all
  }
  return operations_ != before;
}

bool WriterProgress::is_news() {
  return is_given_up_ && !std::exchange(is_told_, true);
}

std::string WriterProgress::describe() const {
  return fmt::format("{} has taken {:.1f} s so far; does its file system hang?",
                     operation_.empty() ? "the last file operation" : operation_, (clock_.now() - since_).count());
}

}  // namespace longhaul
