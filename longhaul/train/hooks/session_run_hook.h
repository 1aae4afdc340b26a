#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "longhaul/session/session.h"
#include "longhaul/train/coordination/coordinator.h"

namespace longhaul {

namespace proto {
class RunMetadata;
}

class Deadline;

// A request to one run: from its caller, or from a hook that adds to the run.
struct SessionRunArgs {
  std::vector<Fetch> fetches{};
  Feeds feeds{};
  RunOptions options{};
};

// The results of one run for one hook.
struct SessionRunValues {
  std::span<const Tensor> results;                   // of this hook's fetches, in order
  const RunOptions* options = nullptr;               // of the run: the caller's and all hooks' merged
  const proto::RunMetadata* run_metadata = nullptr;  // null: not requested
};

// One run, as seen by its hooks.
class SessionRunContext {
 public:
  // `feed_values`: the values of args.feeds, if the feeds themselves contain none; else empty.
  SessionRunContext(Session& session, const SessionRunArgs& args, std::span<const Tensor* const> feed_values = {})
      : session_(session), args_(args), feed_values_(feed_values) {}

  Session& session() const { return session_; }
  const SessionRunArgs& original_args() const;  // the caller's

  // Training ends after this run; the remaining hooks are still called.
  void request_stop() { stop_requested_ = true; }
  bool stop_requested() const { return stop_requested_; }

 private:
  Session& session_;
  const SessionRunArgs& args_;
  const std::span<const Tensor* const> feed_values_;
  mutable std::optional<SessionRunArgs> args_with_values_;  // made on first use
  bool stop_requested_ = false;
};

// Extends the runs of a MonitoredSession, which makes the calls in this order:
//
//   begin -> after_create_session -> (before_run -> the run -> after_run)* -> end
//
// After a lost session is replaced, the sequence continues at after_create_session. All calls come from the thread that
// runs the session, hook by hook in the order given. An exception from a hook ends the run, and training too unless it
// is_lost_session().
class SessionRunHook {
 public:
  virtual ~SessionRunHook() = default;

  // Before the graph is finalized: operations may still be added.
  virtual void begin(Graph& /*graph*/) {}

  // The model is initialised or restored; the graph is finalized.
  virtual void after_create_session(Session& /*session*/, const Coordinator& /*coord*/) {}

  // Returns the hook's request to the run that is about to begin, or nullptr for none. The hook keeps ownership, and
  // must not change the request until after_run.
  virtual const SessionRunArgs* before_run(SessionRunContext& /*context*/) { return nullptr; }

  // Not called if the run failed.
  virtual void after_run(SessionRunContext& /*context*/, const SessionRunValues& /*values*/) {}

  // Training has ended well: by a stop or at the end of the input. Not called after an error.
  virtual void end(Session& /*session*/) {}

  // What a MonitoredSession calls in place of end(): for hooks that may wait long for something that hangs. They wait
  // for half of the time until the deadline at most, even if it is set during the wait. nullptr: there is no deadline.
  // The library's hooks call their end() from it, so a class derived from one of them can override that as well.
  virtual void end_before(Session& session, const Deadline* /*deadline*/) { end(session); }
};

using SessionRunHooks = std::vector<std::shared_ptr<SessionRunHook>>;

}  // namespace longhaul
