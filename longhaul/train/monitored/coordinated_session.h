#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "longhaul/train/monitored/hooked_session.h"
#include "longhaul/train/signals/stop_budget.h"

namespace longhaul {

// A session with its hooks and its threads, those of the queue runners in the graph's collection. The threads' errors
// are kept by a coordinator of its own, to which no error is a clean stop, and which a stop of `parent` stops too.
//
//   made --start--> started --stop_threads--> stopped --close--> closed
//
// One thread at a time.
class CoordinatedSession {
 public:
  CoordinatedSession(std::shared_ptr<Session> session, const SessionRunHooks& hooks, const Coordinator& parent,
                     Seconds stop_grace, const StopBudget& budget = {});
  ~CoordinatedSession();  // closes, if nobody has
  CoordinatedSession(const CoordinatedSession&) = delete;
  CoordinatedSession& operator=(const CoordinatedSession&) = delete;

  // Starts the queue runners, then tells the hooks: after_create_session(). Throws what these throw.
  void start();

  Session& session() const { return runs_.session(); }
  // As HookedSession's.
  std::vector<Tensor> run(const SessionRunArgs& args, std::span<const Tensor* const> feed_values = {},
                          proto::RunMetadata* metadata = nullptr) {
    return runs_.run(args, feed_values, metadata);
  }

  bool stop_requested() const { return runs_.stop_requested(); }     // by a hook
  bool threads_should_stop() const { return coord_.should_stop(); }  // one of them has requested it, or failed
  std::exception_ptr reported_error() const { return coord_.reported_error(); }  // null: none of them has failed

  // What is behind an error of a run: that of a thread, if that says that the session is lost.
  std::exception_ptr cause_of(std::exception_ptr error) const;

  void end_hooks();  // all of them; throws what the first throws that does

  // Stops the threads and waits for them, for stop_grace, or half of what a preemption leaves. Returns the error that a
  // thread reported, if one did.
  std::exception_ptr stop_threads();
  // Does that if nobody has, and closes the session; an error of closing is logged.
  std::exception_ptr close();

 private:
  const std::shared_ptr<Session> session_;
  const SessionRunHooks hooks_;
  const Coordinator coord_;
  const Seconds stop_grace_;
  const StopBudget budget_;
  HookedSession runs_;
  bool threads_stopped_ = false, closed_ = false;
};

}  // namespace longhaul
