#pragma once

#include <functional>

#include "longhaul/train/hooks/session_run_hook.h"

namespace longhaul {

// Feeds each run with the result of a function.
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
