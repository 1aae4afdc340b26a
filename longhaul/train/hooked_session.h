#pragma once

#include <memory>
#include <vector>

#include "longhaul/train/session_run_hook.h"

namespace longhaul {

// Makes the runs of one session with what its hooks want of them: one run for the caller and all hooks. The first run
// of a kind (the same fetches and feeds wanted, in the same words) is compiled for all that follow; those with run
// options or metadata of their own go through Session::run(). One thread at a time.
class HookedSession {
 public:
  HookedSession(std::shared_ptr<Session> session, SessionRunHooks hooks);

  Session& session() const { return *session_; }

  // The results of the caller's own fetches. `metadata` may be null. FailedPreconditionError: "Run called even after
  // should_stop requested"; "Same tensor is fed" by two hooks, or by a hook and the caller.
  std::vector<Tensor> run(const SessionRunArgs& args, proto::RunMetadata* metadata);

  bool stop_requested() const { return stop_requested_; }  // by a hook

 private:
  struct Compiled {
    std::vector<Fetch> fetches, feeds;  // of all parts, in their order
    Callable callable;
  };

  void ask_hooks(SessionRunContext& context);
  RunOptions merged_options() const;
  std::vector<Fetch> merged_fetches() const;
  Feeds merged_feeds() const;
  void check_feeds() const;
  const Callable& compiled();
  bool is_of_this_kind(const Compiled& compiled) const;
  void run_compiled();
  void tell_hooks(SessionRunContext& context, const RunOptions& options, const proto::RunMetadata* metadata);
  std::vector<Tensor> take_results_of_caller();

  const std::shared_ptr<Session> session_;
  const SessionRunHooks hooks_;
  const SessionRunArgs nothing_;
  std::vector<Compiled> compiled_;  // used last comes first
  bool stop_requested_ = false;

  // Of the run under way; members so that their memory is used again.
  std::vector<const SessionRunArgs*> parts_;  // the caller's, then each hook's
  std::vector<const Tensor*> feed_values_;
  std::vector<Tensor> results_;
};

}  // namespace longhaul
