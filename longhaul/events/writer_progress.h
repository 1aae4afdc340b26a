#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"

namespace longhaul {

class Deadline;

// Whether the thread that writes event files gets on, or hangs in its file system (a network mount that does not
// answer). It hangs once a single operation has taken longer than hang_secs; a disk that is slow gets on. Once a wait
// has given up on the thread, further ones give up at once, until it gets on.
//
// One mutex, the owner's, guards it and is the one that the waits take.
class WriterProgress {
 public:
  WriterProgress(Seconds hang_secs, Clock& clock) : clock_(clock), hang_secs_(hang_secs), since_(clock.now()) {}

  // The thread gets on: it begins another operation, which some events wait for, or has nothing to do.
  void begin_to(std::string operation, size_t events);
  void rest();

  // Waits for the thread until is_done() is true, which `changed` notifies. False: it hangs, or half of the time until
  // the deadline is over; the other half is for what follows. A second is always given, even if the deadline is over,
  // because a disk that works needs less.
  bool wait(const std::function<bool()>& is_done, CondVar& changed, Mutex& mutex, const Deadline* deadline = nullptr)
      REQUIRES(mutex);

  // For all waits, from the next one on: together, they take at most `most` of the time until this deadline, besides
  // the second that each one gets. It is also the deadline of those that have none of their own. nullptr: no limit.
  void limit(const Deadline* deadline, Seconds most);

  bool is_news();  // true once, after a wait has given up, until the thread gets on
  std::string describe() const;
  size_t events() const { return events_; }

 private:
  Seconds wait_on(Seconds now, Seconds end, CondVar& changed, Mutex& mutex) REQUIRES(mutex);
  bool gets_on_in_a_moment(const std::function<bool()>& is_done, CondVar& changed, Mutex& mutex) const REQUIRES(mutex);

  Clock& clock_;
  const Seconds hang_secs_;
  const Deadline* limit_ = nullptr;
  Seconds limit_left_{0};  // of what the waits may take together
  Seconds since_;          // of the operation
  std::string operation_;  // empty: it rests
  size_t events_ = 0;
  uint64_t operations_ = 0;  // begun so far
  bool is_given_up_ = false, is_told_ = false;
};

}  // namespace longhaul
