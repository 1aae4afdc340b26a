#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"
#include "longhaul/base/thread.h"

namespace longhaul {

// Which errors mean that the work has ended as it should, and are therefore not reported.
using CleanStop = std::function<bool(const std::exception_ptr&)>;

// clean_stop_types<OutOfRangeError, MyEndOfData>()
template <typename... Exceptions>
CleanStop clean_stop_types();

struct CoordinatorOptions {
  CleanStop clean_stop;           // empty: OutOfRangeError, the end of the input
  Clock* clock = &Clock::real();  // outlives all threads
};

struct JoinOptions {
  Seconds stop_grace{120};  // how long threads may take to end once a stop is requested; negative: no time at all
  bool ignore_live_threads = false;  // whether threads that are still running then are no error
  // Asked at least twice a second while there is a stop: true ends the wait. Threads that are still running are no
  // error then, and the next join() waits for them again.
  std::function<bool()> give_up;
};

// One thread as its coordinator sees it. Any thread.
class CoordinatedThread {
 public:
  ~CoordinatedThread();
  CoordinatedThread(const CoordinatedThread&) = delete;
  CoordinatedThread& operator=(const CoordinatedThread&) = delete;

  const std::string& name() const { return name_; }
  bool finished() const;
  // For a thread that was registered and not started by the coordinator: its last act. Twice is fine.
  void finish();

 private:
  friend class Coordinator;
  struct Signal {
    Mutex mutex;
    CondVar changed;
  };
  CoordinatedThread(std::string name, std::shared_ptr<Signal> signal);

  const std::string name_;
  const std::shared_ptr<Signal> signal_;  // its coordinator's
  bool finished_ GUARDED_BY(signal_->mutex) = false;
  NamedThread thread_ GUARDED_BY(signal_->mutex);
};

// Stops a set of threads together and keeps the first error.
//
//   running --request_stop--> stopping --join--> joined --clear_stop--> running
//
// A Coordinator is a handle: copies speak of the same stop, so a thread that outlives a join keeps what it asks alive.
// Any thread may call any method at any time, except that a registered thread must not call join().
//
//   Coordinator coord;
//   coord.start_thread("reader", [coord] { while (!coord.should_stop()) read_more(); });
//   coord.stop_on_exception([&] { train(); });
//   coord.request_stop();
//   coord.join();  // throws what the reader or train() threw first
class Coordinator {
 public:
  explicit Coordinator(CoordinatorOptions options = {});

  // A coordinator of its own that a stop of this one stops too: its threads and its waits end. It shares neither
  // errors nor threads, and clear_stop() of one leaves the other's stop.
  Coordinator child(CoordinatorOptions options = {}) const;

  bool should_stop() const;

  // Asks all threads to stop. The first error is kept, also when a stop without one came before, and join() throws it.
  // An error of a clean-stop type counts as none, and so does a CancelledError once there is a stop: the stop has
  // cancelled what waited. After a join there is nobody left to report to: the error is thrown
  // at once.
  void request_stop(std::exception_ptr error = nullptr) const;

  // Waits at most `timeout` for a stop; whether there is one.
  bool wait_for_stop(Seconds timeout) const;

  // Runs `body`; what it throws goes to request_stop(). Whether it ended without throwing.
  bool stop_on_exception(const std::function<void()>& body) const;

  // Starts a thread that join() waits for. What `body` throws goes to request_stop(). ResourceExhaustedError: the
  // system has no more threads to give; join() waits for none then.
  std::shared_ptr<CoordinatedThread> start_thread(std::string name, std::function<void()> body) const;

  // Has join() wait for a thread of the caller's own, until it calls finish(). Register before the thread starts.
  std::shared_ptr<CoordinatedThread> register_thread(std::string name) const;

  // Waits for the registered threads and those in `also` to end: without limit until a stop is requested, then for
  // options.stop_grace. Then throws the error that was reported, if one was. DeadlineExceededError "Coordinator stopped
  // with threads still running: NAMES" otherwise, if some still run: no thread is ever killed. The registered threads
  // are forgotten. FailedPreconditionError: called from one of them.
  void join(const JoinOptions& options = {}, const std::vector<std::shared_ptr<CoordinatedThread>>& also = {}) const;
  bool joined() const;
  std::vector<std::string> running() const;  // the names of the registered threads that have not ended

  // Back to running; the error is forgotten.
  void clear_stop() const;

  // Throws the error that was reported, if one was.
  void raise_requested_exception() const;
  std::exception_ptr reported_error() const;  // or gives it; null: none was

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
