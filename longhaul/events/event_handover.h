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

namespace longhaul {

// Passes records from the threads that add events to the thread that writes them, requests for a flush and their
// results, and the state of writing. While writing works, adding waits if the queue is full. While writing fails,
// records beyond the limits are dropped and counted.
class EventHandover {
 public:
  // Is closed at first. Records are due after `flush_secs` at the latest.
  EventHandover(size_t max_events, size_t max_bytes, Seconds flush_secs, Clock& clock);

  // Any thread.
  enum class IfFull { kWait, kDrop };
  bool add(std::string_view record, IfFull if_full);  // false: closed
  bool flush();                                       // throws the error if it fails; false: closed
  bool is_open() const { return queue_.is_open(); }
  std::string last_error() const;   // of writing; empty: none
  uint64_t dropped_events() const;  // the total number
  uint64_t disruptions() const { return disruptions_; }

  // For the thread that starts the writer thread and waits for its end.
  void open();
  bool close();  // the writer's next work is its last; false: already closed
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

 private:
  bool wait_for_space(IfFull if_full);
  void wake_writer();
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
  CondVar done_;   // for threads that flush
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
