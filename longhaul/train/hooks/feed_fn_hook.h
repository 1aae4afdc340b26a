#pragma once

#include <functional>
#include <utility>

#include "longhaul/train/hooks/session_run_hook.h"

namespace longhaul {

// Feeds each run with the result of `feed_fn`, which is called before the run, on the thread that runs the session. It
// is called again if the run is repeated because the session was lost. Its exception ends the run. If the caller or
// another hook feeds the same tensor, the run throws FailedPreconditionError ("Same tensor is fed").
class FeedFnHook : public SessionRunHook {
 public:
  explicit FeedFnHook(std::function<Feeds()> feed_fn) : feed_fn_(std::move(feed_fn)) {}

  const SessionRunArgs* before_run(SessionRunContext&) override {
    args_.feeds = feed_fn_();
    return &args_;
  }

 private:
  const std::function<Feeds()> feed_fn_;
  SessionRunArgs args_;
};

}  // namespace longhaul
