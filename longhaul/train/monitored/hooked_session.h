#pragma once

#include <memory>
#include <span>
#include <vector>

#include "longhaul/train/hooks/session_run_hook.h"
#include "longhaul/train/hooks/steps_by_hooks.h"
#include "longhaul/train/monitored/lost_run.h"

namespace longhaul {

// A run that was refused, because a hook has requested a stop. It has changed nothing.
class RunAfterStopError : public FailedPreconditionError {
 public:
  RunAfterStopError()
      : FailedPreconditionError(
            "Run called even after should_stop requested. End the loop when session.should_stop() is true") {}
};

// Runs one session for a caller and its hooks: each run serves all of them. The first run with the same fetches and
// feeds (named in the same way) is compiled for all later ones. Runs with run options or metadata use Session::run().
// One thread at a time may call.
class HookedSession {
 public:
  HookedSession(std::shared_ptr<Session> session, SessionRunHooks hooks);

  Session& session() const { return *session_; }

  // The results of the caller's own fetches. `metadata` may be null, `feed_values` empty: see SessionRunContext.
  // RunAfterStopError: a hook has requested a stop. FailedPreconditionError: "Same tensor is fed" by two hooks, or by a
  // hook and the caller.
  std::vector<Tensor> run(const SessionRunArgs& args, std::span<const Tensor* const> feed_values = {},
                          proto::RunMetadata* metadata = nullptr);

  bool stop_requested() const { return stop_requested_; }  // by a hook, also in a run that failed

  // The last run, if it failed. On servers, a run whose hooks failed after it was committed.
  const LostRun& lost_run() const { return lost_; }
  // The next run was committed already, by a session that was lost with its results. What has no side effect, and takes
  // no input, is computed for the caller and the hooks; other results are undefined tensors that say so.
  void complete_next_run() { completes_next_ = true; }

 private:
  struct Compiled {
    std::vector<std::vector<Fetch>> fetches, feeds;  // of each part
    std::vector<size_t> first_results;
    Callable callable;
  };

  std::vector<Tensor> run_with_hooks(SessionRunContext& context, std::span<const Tensor* const> feed_values,
                                     proto::RunMetadata* metadata);
  void ask_hooks(SessionRunContext& context);
  RunOptions merged_options() const;
  std::vector<Fetch> merge_fetches();  // sets first_results_
  Feeds merged_feeds() const;
  void check_feeds() const;
  const Compiled& compiled();
  Compiled compile();
  bool is_of_this_kind(const Compiled& compiled) const;
  std::vector<Tensor> run_compiled(std::span<const Tensor* const> feed_values);
  std::vector<Tensor> run_rest(const RunOptions& options, proto::RunMetadata* metadata);
  void tell_hooks(SessionRunContext& context, std::span<const Tensor> results, const RunOptions& options,
                  const proto::RunMetadata* metadata);

  const std::shared_ptr<Session> session_;
  const SessionRunHooks hooks_;
  const SessionRunArgs nothing_;
  std::vector<Compiled> compiled_;  // most recently used first
  bool stop_requested_ = false;
  bool completes_next_ = false;
  bool was_made_ = false;  // the run under way
  LostRun lost_;
  StepsByHooks steps_by_hooks_;

  // Of the run under way; members so that their memory is reused.
  std::vector<const SessionRunArgs*> parts_;  // the caller's, then each hook's
  std::vector<const Tensor*> feed_values_;
  std::vector<size_t> first_results_;  // where each part's results start; equal fetches share results
};

}  // namespace longhaul
