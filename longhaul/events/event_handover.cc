#include "longhaul/events/event_handover.h"

#include <fmt/format.h>

#include <utility>

#include "longhaul/base/deadline.h"

namespace longhaul {
namespace {

constexpr Seconds kLongWait{3600};

// The one who waits is not between looking and waiting.
void notify_under(Mutex& mutex, CondVar& changed) {
  MutexLock lock(mutex);
  changed.notify_one();
}

}  // namespace

EventHandover::EventHandover(size_t max_events, size_t max_bytes, Seconds flush_secs, Seconds hang_secs, Clock& clock)
    : clock_(clock), flush_secs_(flush_secs), queue_(max_events, max_bytes), progress_(hang_secs, clock) {}

EventHandover::Added EventHandover::add(std::string_view record, IfFull if_full) {
  for (;;) {
    switch (queue_.add(record)) {
      case EventQueue::Result::kAdded: return Added::kYes;
      case EventQueue::Result::kAddedWake: notify_under(mutex_, work_); return Added::kYes;
      case EventQueue::Result::kClosed: return Added::kClosed;
      case EventQueue::Result::kFull:
        if (const auto dropped = wait_for_space(if_full)) return *dropped;
    }
  }
}

// nullopt: there may be some. Else nobody is to wait for it, and one record was counted as dropped.
std::optional<EventHandover::Added> EventHandover::wait_for_space(IfFull if_full) {
  MutexLock lock(mutex_);
  const auto may_go_on = [this]() REQUIRES(mutex_) { return !queue_.is_open() || failing_ || !queue_.is_full(); };
  // wait: for room, which take() makes; failed(), close() and a file system that hangs end it, too
  const bool waits = if_full == IfFull::kWait, hangs = waits && !progress_.wait(may_go_on, space_, mutex_);
  if (!queue_.is_open() || !queue_.is_full()) return std::nullopt;
  if (waits && !hangs && !failing_) return std::nullopt;  // there was some, and another producer has taken it
  ++dropped_;
  if (hangs) ++disruptions_;  // what describes a tag may be among it
  if ((failing_ || hangs) && ++dropped_while_failing_ == 1 && failing_) {
    drop_is_news_ = true;
    work_.notify_one();
  }
  return hangs ? Added::kGaveUp : Added::kDropped;
}

EventHandover::Flush EventHandover::flush(const Deadline* deadline) {
  const Deadline::Wait notified(deadline, mutex_, done_);
  MutexLock lock(mutex_);
  if (!queue_.is_open()) return Flush::kClosed;
  const uint64_t mine = ++flushes_asked_;
  work_.notify_one();
  const auto is_served = [this, mine]() REQUIRES(mutex_) { return flushes_served_ >= mine; };
  if (!progress_.wait(is_served, done_, mutex_, deadline)) {
    space_.notify_all();  // who adds is not to wait longer
    return Flush::kHangs;
  }
  if (flush_error_) std::rethrow_exception(flush_error_);
  return Flush::kDone;
}

std::string EventHandover::describe_hang() const {
  MutexLock lock(mutex_);
  return fmt::format("{} events may be missing: {}", progress_.events() + queue_.events(), progress_.describe());
}

bool EventHandover::is_hang_news() {
  MutexLock lock(mutex_);
  return progress_.is_news();
}

void EventHandover::limit_waits(const Deadline* deadline, Seconds most) {
  MutexLock lock(mutex_);
  progress_.limit(deadline, most);
}

// Under the mutex: whoever waits has either seen the deadline, or waits for this.
void EventHandover::notify_waits() {
  MutexLock lock(mutex_);
  space_.notify_all();
  done_.notify_all();
}

std::string EventHandover::last_error() const {
  MutexLock lock(mutex_);
  return last_error_;
}

uint64_t EventHandover::dropped_events() const {
  MutexLock lock(mutex_);
  return dropped_;
}

bool EventHandover::begin_turn(const Deadline* deadline) {
  const Deadline::Wait notified(deadline, mutex_, done_);
  MutexLock lock(mutex_);
  const auto is_free = [this]() REQUIRES(mutex_) { return !has_turn_; };
  if (!progress_.wait(is_free, done_, mutex_, deadline)) return false;
  has_turn_ = true;
  return true;
}

void EventHandover::end_turn() {
  MutexLock lock(mutex_);
  has_turn_ = false;
  done_.notify_all();
}

bool EventHandover::has_ended() const {
  MutexLock lock(mutex_);
  return has_ended_;
}

bool EventHandover::open() {
  MutexLock lock(mutex_);
  queue_.open();
  failing_ = is_left_ = false;
  dropped_before_ = dropped_;
  dropped_while_failing_ = 0;
  if (!std::exchange(has_ended_, false)) return false;
  flush_due_.reset();  // of the thread before
  progress_.rest();
  return true;
}

bool EventHandover::close() {
  {
    MutexLock lock(mutex_);
    if (!queue_.is_open()) return false;
    queue_.close();
  }
  work_.notify_one();
  space_.notify_all();
  return true;
}

bool EventHandover::wait_for_end(const Deadline* deadline) {
  const Deadline::Wait notified(deadline, mutex_, done_);
  MutexLock lock(mutex_);
  const auto has_ended = [this]() REQUIRES(mutex_) { return has_ended_; };
  is_left_ = !progress_.wait(has_ended, done_, mutex_, deadline);
  return !is_left_;
}

EventHandover::Result EventHandover::result() const {
  MutexLock lock(mutex_);
  return {dropped_ - dropped_before_, flush_error_, last_error_};
}

// The queue is looked at once: what is added afterwards wakes the thread once it waits.
EventHandover::Work EventHandover::wait_for_work(bool is_holding, bool has_file) {
  MutexLock lock(mutex_);
  for (;;) {
    const Seconds now = clock_.now();
    const bool is_queued = queue_.events() > 0;
    if (is_queued && !flush_due_) flush_due_ = now + flush_secs_;
    const Seconds time = time_until_due(now, is_holding || is_queued, has_file);
    const bool is_due = time <= Seconds{0}, tells_of_drop = std::exchange(drop_is_news_, false);
    if (is_due) progress_.begin_to("beginning to write", 0);
    if (is_due || tells_of_drop) return {flushes_asked_, !queue_.is_open(), tells_of_drop, is_due};
    // wait: until the next flush or attempt is due; events, flush() and close() end it
    clock_.wait_for(work_, mutex_, time);
  }
}

// Not positive: there is work now.
Seconds EventHandover::time_until_due(Seconds now, bool has_records, bool has_file) const {
  if (!queue_.is_open() || flushes_asked_ > flushes_served_) return Seconds{0};
  if (!has_records) return kLongWait;
  if (failing_) return next_attempt_ - now;
  if (!has_file || queue_.is_large()) return Seconds{0};
  return *flush_due_ - now;
}

size_t EventHandover::take(std::string& records) {
  flush_due_.reset();
  const size_t events = queue_.take(records);
  MutexLock lock(mutex_);
  space_.notify_all();
  return events;
}

bool EventHandover::failed(const std::string& message, Seconds next_attempt) {
  next_attempt_ = next_attempt;
  bool is_news;
  {
    MutexLock lock(mutex_);
    is_news = !std::exchange(failing_, true);
    last_error_ = message;
  }
  ++disruptions_;
  space_.notify_all();
  return is_news;
}

std::optional<uint64_t> EventHandover::succeeded() {
  MutexLock lock(mutex_);
  const bool failed = std::exchange(failing_, false);
  if (!failed && dropped_while_failing_ == 0) return std::nullopt;
  ++disruptions_;
  return std::exchange(dropped_while_failing_, 0);
}

void EventHandover::count_dropped(size_t events) {
  MutexLock lock(mutex_);
  dropped_ += events;
}

void EventHandover::report(const Work& work, const std::exception_ptr& error) {
  MutexLock lock(mutex_);
  flushes_served_ = work.is_last && !queue_.is_open() ? flushes_asked_ : work.flush;
  flush_error_ = error;
  progress_.rest();
  done_.notify_all();
}

void EventHandover::begin_to(std::string operation, size_t events) {
  MutexLock lock(mutex_);
  progress_.begin_to(std::move(operation), events);
}

bool EventHandover::is_left_behind() const {
  MutexLock lock(mutex_);
  return is_left_;
}

bool EventHandover::end() {
  MutexLock lock(mutex_);
  if (queue_.is_open()) return false;
  has_ended_ = true;
  done_.notify_all();
  return true;
}

}  // namespace longhaul
