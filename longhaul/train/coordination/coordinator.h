#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"
#include "longhaul/base/thread.h"

namespace longhaul {

// Whether an error means a normal end of the work. Such an error is not reported.
using CleanStop = std::function<bool(const std::exception_ptr&)>;

// clean_stop_types<OutOfRangeError, MyEndOfData>()
template <typename... Exceptions>
CleanStop clean_stop_types();

struct CoordinatorOptions {
  CleanStop clean_stop{};         // empty: OutOfRangeError, the end of the input
  Clock* clock = &Clock::real();  // outlives all threads
};

struct JoinOptions {
  Seconds stop_grace{120};           // how long threads may take to end after a stop request; negative: no time
  bool ignore_live_threads = false;  // true: threads that still run after that are not an error
  // Returns the time, on the coordinator's clock, at which the wait ends; nullopt: not known yet. Called once a stop is
  // requested, and again after each further request and each notify(). Threads that still run at that time are not an
  // error, and the next join() waits for them again.
  std::function<std::optional<Seconds>()> give_up_at{};
};

// A coordinator's record of one thread. Any thread may call.
class CoordinatedThread {
 public:
  ~CoordinatedThread();
  CoordinatedThread(const CoordinatedThread&) = delete;
  CoordinatedThread& operator=(const CoordinatedThread&) = delete;

  const std::string& name() const { return name_; }
  bool finished() const;
  // For a thread that was registered, not started by the coordinator: its last call. May be called twice.
  void finish();

 private:
  friend class Coordinator;
  struct Signal {
    void note_change() REQUIRES(mutex);

    Mutex mutex;
    CondVar changed;
    uint64_t changes GUARDED_BY(mutex) = 0;  // a waiting thread sleeps until this changes
  };
  CoordinatedThread(std::string name, std::shared_ptr<Signal> signal);
  void notify_at_end(const std::shared_ptr<Signal>& waiting);

  const std::string name_;
  const std::shared_ptr<Signal> signal_;  // of its coordinator
  bool finished_ GUARDED_BY(signal_->mutex) = false;
  std::vector<std::weak_ptr<Signal>> waiting_ GUARDED_BY(signal_->mutex);  // coordinators whose join() waits
  NamedThread thread_ GUARDED_BY(signal_->mutex);
};

// Stops a set of threads together and keeps the first error.
//
//   running --request_stop--> stopping --join--> joined --clear_stop--> running
//
// A Coordinator is a handle: copies share the same state, so a thread that outlives a join keeps the state alive. Any
// thread may call any method at any time, except that a registered thread must not call join().
//
//   Coordinator coord;
//   coord.start_thread("reader", [coord] { while (!coord.should_stop()) read_more(); });
//   coord.stop_on_exception([&] { train(); });
//   coord.request_stop();
//   coord.join();  // throws the first error of the reader or train()
class Coordinator {
 public:
  explicit Coordinator(CoordinatorOptions options = {});

  // Returns a separate coordinator that also stops when this one stops, which ends its threads and its waits. The two
  // share neither errors nor threads, and clear_stop() on one does not affect the stop of the other.
  Coordinator child(CoordinatorOptions options = {}) const;

  bool should_stop() const;

  // Asks all threads to stop. Keeps the first error, even after an earlier stop without one; join() throws it. An error
  // of a clean-stop type does not count. Neither does a CancelledError after a stop was requested, because the stop
  // itself cancels waits. After a join, nothing would report the error, so it is thrown immediately.
  void request_stop(std::exception_ptr error = nullptr) const;

  // The same without an error. clear_stop() does not clear this stop as long as `reason` exists.
  void request_stop_while(const std::weak_ptr<const void>& reason) const;

  // Waits for a stop, at most for `timeout`. Returns whether a stop was requested.
  bool wait_for_stop(Seconds timeout) const;
  bool wait_for_stop_until(Seconds time) const;  // the same until a time of clock()
  void wait_for_stop() const;                    // however long it takes

  // Waits for a stop or until `is_due` returns true, at most for `timeout` (nullopt: no limit). Returns whether a stop
  // was requested. `is_due` is called at the beginning and after each notify().
  bool wait_for_stop_or(const std::function<bool()>& is_due, std::optional<Seconds> timeout = std::nullopt) const;
  void notify() const;

  // For threads that stay after a stop, as long as the work that they serve continues: waits until a join() waits for
  // the threads, at most for `timeout`. Returns whether one waits, or has returned, or the stop was cleared.
  bool wait_for_join(Seconds timeout) const;

  // Runs `body` and passes an exception from it to request_stop(). Returns whether `body` ended without throwing.
  bool stop_on_exception(const std::function<void()>& body) const;

  // Starts a thread, for which join() waits. An exception from `body` is passed to request_stop().
  // ResourceExhaustedError: the system has no more threads; join() then does not wait for this one.
  std::shared_ptr<CoordinatedThread> start_thread(std::string name, std::function<void()> body) const;

  // Makes join() wait for a thread that the caller starts, until that thread calls finish(). Register it before it
  // starts.
  std::shared_ptr<CoordinatedThread> register_thread(std::string name) const;

  // Waits for the registered threads and those in `also` to end: without limit until a stop is requested, then for
  // options.stop_grace. Then throws the reported error, if any. If there is none and threads still run, throws
  // DeadlineExceededError "Coordinator stopped with threads still running: NAMES"; no thread is ever killed. Forgets
  // the registered threads. FailedPreconditionError: called from one of the threads.
  void join(const JoinOptions& options = {}, const std::vector<std::shared_ptr<CoordinatedThread>>& also = {}) const;
  bool joined() const;
  std::vector<std::string> running() const;  // the names of the registered threads that have not ended

  // Forgets the error, and returns to the running state unless the reason of a request_stop_while() still exists.
  void clear_stop() const;

  // Throws the reported error, if any.
  void raise_requested_exception() const;
  std::exception_ptr reported_error() const;  // the same error, not thrown; null: none

  // Whether `other` is a copy: what stops one stops both.
  bool is_same(const Coordinator& other) const { return state_ == other.state_; }

  Clock& clock() const;

 private:
  using Threads = std::vector<std::shared_ptr<CoordinatedThread>>;
  void refuse_own_threads(const Threads& threads) const;
  Threads wait_for_threads(const Threads& threads, const JoinOptions& options, bool* gave_up) const;
  bool note_stop(const std::exception_ptr& error) const;
  void log_reported(const std::exception_ptr& error) const;

  struct State;
  class Joining;
  std::shared_ptr<State> state_;
};

template <typename... Exceptions>
CleanStop clean_stop_types() {
  return [](const std::exception_ptr& error) {
    const auto is = [&]<typename E>(const E*) {
      try {
        std::rethrow_exception(error);
      } catch (const E&) {
        return true;
      } catch (...) {
        return false;
      }
    };
    return (is(static_cast<const Exceptions*>(nullptr)) || ...);
  };
}

}  // namespace longhaul
