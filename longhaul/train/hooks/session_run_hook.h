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

// What one run is asked for: by its caller, or by a hook that wants something computed along.
struct SessionRunArgs {
  std::vector<Fetch> fetches;
  Feeds feeds;
  RunOptions options;
};

// What one run gave to one hook.
struct SessionRunValues {
  std::span<const Tensor> results;                   // of this hook's own fetches, in their order
  const RunOptions* options = nullptr;               // those that the run had, of all hooks and the caller together
  const proto::RunMetadata* run_metadata = nullptr;  // null: none was asked for
};

// One run as its hooks see it.
class SessionRunContext {
 public:
  // `feed_values`: what is fed, for args.feeds that have no values; empty: they have them.
  SessionRunContext(Session& session, const SessionRunArgs& args, std::span<const Tensor* const> feed_values = {})
      : session_(session), args_(args), feed_values_(feed_values) {}

  Session& session() const { return session_; }
  const SessionRunArgs& original_args() const;  // the caller's

  // The training ends after this run; the hooks after this one are still called.
  void request_stop() { stop_requested_ = true; }
  bool stop_requested() const { return stop_requested_; }

 private:
  Session& session_;
  const SessionRunArgs& args_;
  const std::span<const Tensor* const> feed_values_;
  mutable std::optional<SessionRunArgs> args_with_values_;  // once somebody has asked
  bool stop_requested_ = false;
};

// Extends the runs of a MonitoredSession. In this order:
//
//   begin -> after_create_session -> (before_run -> the run -> after_run)* -> end
//
// After a lost session was replaced it goes on with after_create_session. All calls come from the thread that runs the
// session, hook after hook in the order they were given. What a hook throws ends the run, and the training unless it is
// an error that is_lost_session().
class SessionRunHook {
 public:
  virtual ~SessionRunHook() = default;

  // Before the graph is finalized: operations may still be added.
  virtual void begin(Graph& /*graph*/) {}

  // The model is initialised or restored; the graph is finalized.
  virtual void after_create_session(Session& /*session*/, const Coordinator& /*coord*/) {}

  // What the hook wants of the run that comes, or nullptr for nothing. It stays the hook's own, and must stay as it is
  // until after_run.
  virtual const SessionRunArgs* before_run(SessionRunContext& /*context*/) { return nullptr; }

  // Not called when the run failed.
  virtual void after_run(SessionRunContext& /*context*/, const SessionRunValues& /*values*/) {}

  // The training has ended well: by a stop or at the end of the input. Not called after an error.
  virtual void end(Session& /*session*/) {}
};

using SessionRunHooks = std::vector<std::shared_ptr<SessionRunHook>>;

}  // namespace longhaul
