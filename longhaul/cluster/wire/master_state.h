#pragma once

#include <utility>

#include "longhaul/base/job_threads.h"
#include "longhaul/cluster/wire/master_service.h"
#include "longhaul/cluster/wire/run_once.h"
#include "longhaul/cluster/wire/wire_sessions.h"

namespace longhaul {

// What the calls of clients share.
struct MasterState {
  explicit MasterState(MasterServiceOptions with)
      : options(std::move(with)),
        sessions(*options.clock, {.most = options.most_sessions, .gc = options.session_gc}),
        once(*options.clock),
        threads(*options.clock, names(),
                {.most = options.most_threads, .most_queued = options.most_queued, .around = options.around}),
        closing(*options.clock, names(), {.most = 4, .most_queued = options.most_queued, .around = options.around}) {}

  static JobThreads::Names names() {
    return {.thread = "lh-master", .owner = "the master", .jobs = "calls of clients"};
  }

  void request_stop(const std::string& why) {
    threads.request_stop(why);
    closing.request_stop(why);
  }

  const MasterServiceOptions options;
  WireSessions sessions;
  RunOnce once;
  JobThreads threads;
  JobThreads closing;  // for what ends the runs that all of `threads` may wait in
};

}  // namespace longhaul
