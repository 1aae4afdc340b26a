#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"
#include "longhaul/events/event_queue.h"
#include "longhaul/events/writer_progress.h"

namespace longhaul {

class Deadline;

// Passes records from the threads that add events to the thread that writes them, requests for a flush and their
// results, and the state of writing. While writing works, adding waits if the queue is full. While writing fails or
// hangs (WriterProgress), records beyond the limits are dropped and counted.
class EventHandover {
 public:
  // It begins closed. Records are due after `flush_secs` at the latest.
  EventHandover(size_t max_events, size_t max_bytes, Seconds flush_secs, Seconds hang_secs, Clock& clock);

  // Any thread.
  enum class IfFull { kWait, kDrop };
  enum class Added { kYes, kClosed, kDropped, kGaveUp };  // kGaveUp: dropped, as the writer hangs
  Added add(std::string_view record, IfFull if_full);
  enum class Flush { kDone, kClosed, kHangs };
  Flush flush(const Deadline* deadline);  // throws the error if it fails
  bool is_open() const { return queue_.is_open(); }
  std::string last_error() const;   // of writing; empty: none
  uint64_t dropped_events() const;  // the total number
  uint64_t disruptions() const { return disruptions_; }
  void limit_waits(const Deadline* deadline, Seconds most);  // WriterProgress::limit()
  void notify_waits();                                       // that the deadline was set

  // For errors: the operation in which the writer thread hangs, for how long, and how many events wait.
  std::string describe_hang() const;
  bool is_hang_news();  // true once for each hang

  // Between these two calls, no other thread opens or closes. begin_turn() waits as flush() does, and returns false if
  // another thread's turn takes too long.
  bool begin_turn(const Deadline* deadline);
  void end_turn();

  // For the thread whose turn it is: it starts the writer thread and waits for its end.
  bool has_ended() const;  // there is no writer thread
  bool open();             // true: start a thread; false: the one that was left behind still runs, and continues
  bool close();            // the writer's next work is its last; false: already closed
  bool wait_for_end(const Deadline* deadline);  // after close(); false: the thread hangs and is left behind
  struct Result {
    uint64_t dropped;          // since open()
    std::exception_ptr error;  // of the last flush
    std::string last_error;
  };
  Result result() const;  // call it once the writer thread has ended

  // For the writer thread.
  struct Work {
    uint64_t flush;  // the newest requested flush
    bool is_last;
    bool tells_of_drop;  // whether it reports the first drop since writing began to fail
    bool is_due;         // whether there is something to write
  };
  // `is_holding`: the writer has records that it could not write. Without a file, records are due immediately.
  Work wait_for_work(bool is_holding, bool has_file);
  size_t take(std::string& records);  // EventQueue::take()
  // Reports a failed write. Nothing is due until `next_attempt`. Returns whether writing worked before.
  bool failed(const std::string& message, Seconds next_attempt);
  // Reports a successful write. Returns the number of events that were dropped while writing failed; nullopt: it had
  // not failed.
  std::optional<uint64_t> succeeded();
  void count_dropped(size_t events);
  void report(const Work& work, const std::exception_ptr& error);  // ends the flushes that wait for this work
  // Says what the thread begins to do next, and with how many events, which shows that it does not hang.
  void begin_to(std::string operation, size_t events);
  bool is_left_behind() const;  // wait_for_end() has given up, and open() was not called since
  bool end();                   // false: opened again meanwhile, so the thread continues

 private:
  std::optional<Added> wait_for_space(IfFull if_full);
  Seconds time_until_due(Seconds now, bool has_records, bool has_file) const REQUIRES(mutex_);

  Clock& clock_;
  const Seconds flush_secs_;
  EventQueue queue_;
  std::atomic<uint64_t> disruptions_ = 0;

  // Used only by the writer thread while it runs.
  std::optional<Seconds> flush_due_;
  Seconds next_attempt_{0};

  mutable Mutex mutex_;
  CondVar work_;   // for the writer thread
  CondVar space_;  // for threads that add
  CondVar done_;   // for threads that flush or close
  WriterProgress progress_ GUARDED_BY(mutex_);
  bool has_turn_ GUARDED_BY(mutex_) = false;  // somebody opens or closes
  bool has_ended_ GUARDED_BY(mutex_) = true;
  bool is_left_ GUARDED_BY(mutex_) = false;
  bool failing_ GUARDED_BY(mutex_) = false;
  bool drop_is_news_ GUARDED_BY(mutex_) = false;  // to be logged
  uint64_t flushes_asked_ GUARDED_BY(mutex_) = 0;
  uint64_t flushes_served_ GUARDED_BY(mutex_) = 0;
  std::exception_ptr flush_error_ GUARDED_BY(mutex_);
  uint64_t dropped_ GUARDED_BY(mutex_) = 0;
  uint64_t dropped_before_ GUARDED_BY(mutex_) = 0;  // the count at open()
  uint64_t dropped_while_failing_ GUARDED_BY(mutex_) = 0;
  std::string last_error_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
