#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "longhaul/train/coordination/open_training.h"
#include "longhaul/train/monitored/hooked_session.h"
#include "longhaul/train/signals/stop_budget.h"

namespace longhaul {

// A session with its hooks and the threads of the queue runners in the graph's collection. Its own coordinator keeps
// the threads' errors. This coordinator treats no error as a clean stop, and also stops when `parent` stops.
//
//   made --start--> started --stop_threads--> stopped --close--> closed
//
// One thread at a time.
class CoordinatedSession {
 public:
  CoordinatedSession(std::shared_ptr<Session> session, const SessionRunHooks& hooks, const Coordinator& parent,
                     Seconds stop_grace, const StopBudget& budget = {});
  ~CoordinatedSession();  // closes, if not closed already
  CoordinatedSession(const CoordinatedSession&) = delete;
  CoordinatedSession& operator=(const CoordinatedSession&) = delete;

  // Starts the queue runners, then calls the hooks' after_create_session(). Throws what these throw.
  void start();

  Session& session() const { return runs_.session(); }
  // As HookedSession's.
  std::vector<Tensor> run(const SessionRunArgs& args, std::span<const Tensor* const> feed_values = {},
                          proto::RunMetadata* metadata = nullptr) {
    if (coord_.should_stop()) note_late_run();
    return runs_.run(args, feed_values, metadata);
  }

  bool stop_requested() const { return runs_.stop_requested(); }                 // by a hook
  bool threads_should_stop() const { return coord_.should_stop(); }              // one of them requested it or failed
  std::exception_ptr reported_error() const { return coord_.reported_error(); }  // null: none has failed

  const LostRun& lost_run() const { return runs_.lost_run(); }  // as HookedSession's
  void complete_next_run() { runs_.complete_next_run(); }

  // The cause of a run's error: a thread's error instead, if that says that the session is lost.
  std::exception_ptr cause_of(std::exception_ptr error) const;

  void end_hooks();  // all of them; throws the first error

  // Stops the threads and waits for them, for stop_grace or half of the time that a preemption leaves. Returns the
  // error that a thread reported, if any.
  std::exception_ptr stop_threads();
  // Stops the threads if that was not done yet, and closes the session, which waits for its runs for half of the time
  // that a preemption leaves; an error of closing is logged.
  std::exception_ptr close();

 private:
  void note_late_run();

  const OpenTraining open_;
  const std::shared_ptr<Session> session_;
  const SessionRunHooks hooks_;
  const Coordinator coord_;
  const Seconds stop_grace_;
  const StopBudget budget_;
  HookedSession runs_;
  bool threads_stopped_ = false, closed_ = false;
  std::optional<Seconds> first_late_run_;  // when the first run after a stop began
  bool late_runs_are_known_ = false;
};

}  // namespace longhaul
