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

// The errors that mean a normal end of the work, and are therefore not reported.
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
  bool ignore_live_threads = false;  // true: threads still running then are not an error
  // The time, on the coordinator's clock, at which the wait ends; nullopt: it is not known yet. Called once a stop is
  // requested, and again after each further request and each notify(). Threads that are still running at that time are
  // not an error, and the next join() waits for them again.
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
  // For a registered thread, which the coordinator did not start: its last call. May be called twice.
  void finish();

 private:
  friend class Coordinator;
  struct Signal {
    void note_change() REQUIRES(mutex);

    Mutex mutex;
    CondVar changed;
    uint64_t changes GUARDED_BY(mutex) = 0;  // whoever has looked waits only while there was none since
  };
  CoordinatedThread(std::string name, std::shared_ptr<Signal> signal);
  void notify_at_end(const std::shared_ptr<Signal>& waiting);

  const std::string name_;
  const std::shared_ptr<Signal> signal_;  // its coordinator's
  bool finished_ GUARDED_BY(signal_->mutex) = false;
  std::vector<std::weak_ptr<Signal>> waiting_ GUARDED_BY(signal_->mutex);  // other coordinators, whose join() waits
  NamedThread thread_ GUARDED_BY(signal_->mutex);
};

// Stops a set of threads together and keeps the first error.
//
//   running --request_stop--> stopping --join--> joined --clear_stop--> running
//
// A Coordinator is a handle: copies share the same state, so a thread that outlives a join keeps it alive. Any thread
// may call any method at any time, except that a registered thread must not call join().
//
//   Coordinator coord;
//   coord.start_thread("reader", [coord] { while (!coord.should_stop()) read_more(); });
//   coord.stop_on_exception([&] { train(); });
//   coord.request_stop();
//   coord.join();  // throws the first error of the reader or train()
class Coordinator {
 public:
  explicit Coordinator(CoordinatorOptions options = {});

  // A separate coordinator that also stops when this one does: its threads and its waits end. The two share neither
  // errors nor threads, and clear_stop() of one does not affect the other's stop.
  Coordinator child(CoordinatorOptions options = {}) const;

  bool should_stop() const;

  // Asks all threads to stop. The first error is kept, even after an earlier stop without one, and join() throws it. An
  // error of a clean-stop type does not count, nor does a CancelledError once a stop was requested: the stop itself
  // cancels waits. After a join, when nothing would report it, the error is thrown immediately.
  void request_stop(std::exception_ptr error = nullptr) const;

  // The same without an error, and clear_stop() does not clear this stop as long as `reason` exists.
  void request_stop_while(const std::weak_ptr<const void>& reason) const;

  // Waits for a stop, `timeout` at most. Returns whether there is one.
  bool wait_for_stop(Seconds timeout) const;
  void wait_for_stop() const;  // however long it takes

  // Waits for a stop or until `is_due` returns true, `timeout` at most (nullopt: no limit). Returns whether there is a
  // stop. `is_due` is called at the beginning and after each notify().
  bool wait_for_stop_or(const std::function<bool()>& is_due, std::optional<Seconds> timeout = std::nullopt) const;
  void notify() const;

  // Runs `body`; an exception goes to request_stop(). Returns whether it ended without throwing.
  bool stop_on_exception(const std::function<void()>& body) const;

  // Starts a thread that join() waits for. An exception from `body` goes to request_stop(). ResourceExhaustedError: the
  // system has no more threads; join() then does not wait for this one.
  std::shared_ptr<CoordinatedThread> start_thread(std::string name, std::function<void()> body) const;

  // Makes join() wait for the caller's own thread until that calls finish(). Register before the thread starts.
  std::shared_ptr<CoordinatedThread> register_thread(std::string name) const;

  // Waits for the registered threads and those in `also` to end: without limit until a stop is requested, then for
  // options.stop_grace. Then throws the reported error, if any. Otherwise, if threads still run, DeadlineExceededError
  // "Coordinator stopped with threads still running: NAMES": no thread is ever killed. The registered threads are
  // forgotten. FailedPreconditionError: called from one of them.
  void join(const JoinOptions& options = {}, const std::vector<std::shared_ptr<CoordinatedThread>>& also = {}) const;
  bool joined() const;
  std::vector<std::string> running() const;  // the names of the registered threads that have not ended

  // Back to running, unless there still is the reason of a request_stop_while(); the error is forgotten.
  void clear_stop() const;

  // Throws the reported error, if any.
  void raise_requested_exception() const;
  std::exception_ptr reported_error() const;  // or returns it; null: none

  Clock& clock() const;

 private:
  using Threads = std::vector<std::shared_ptr<CoordinatedThread>>;
  void refuse_own_threads(const Threads& threads) const;
  Threads wait_for_threads(const Threads& threads, const JoinOptions& options, bool* gave_up) const;
  void log_reported(const std::exception_ptr& error) const;

  struct State;
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
