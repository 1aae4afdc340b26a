#pragma once

#include <functional>
#include <memory>
#include <string>

#include "longhaul/base/job_threads.h"
#include "longhaul/cluster/exchange/step_exchange.h"
#include "longhaul/cluster/shards/shard_writes.h"
#include "longhaul/cluster/transport/peer_watch.h"
#include "longhaul/cluster/worker/change_calls.h"
#include "longhaul/cluster/worker/ended_training.h"
#include "longhaul/cluster/worker/step_table.h"
#include "longhaul/cluster/worker/stop_calls.h"
#include "longhaul/cluster/worker/worker_sessions.h"
#include "longhaul/proto/cluster_service.pb.h"

namespace longhaul {

// How a task serves the masters of its cluster.
struct WorkerOptions {
  // One for each part of a step under way, and for whatever else cannot be answered at once. No job stands in a queue:
  // a part may wait for another one.
  JobThreads::Options threads{.most = 256, .most_idle = 256};
  ExchangeOptions exchange{};
  StepTable::Options steps{};
  Seconds late_watch{10};  // a part waits that long to be registered for its session's Watch
  Seconds undecided{60};   // a prepared step is in doubt if its master is silent that long after the step's deadline
  Seconds doubt{60};       // a step in doubt waits that long for participants that do not answer
  Seconds freeze{10};      // the longest lease of a shut gate, and wait for a step that is inside
  Seconds taken{600};      // the longest lease of what a snapshot has taken
  proto::GetStatusReply status{};  // what a server says to clients about its cluster and its sessions
  // A chief has ended its training for good; `chief` is the task of its session, or a client. May come several times,
  // on a thread of the transport: it must not wait.
  std::function<void(const std::string& chief)> training_ended{};
};

// What the calls of a task have in common. The calls and the jobs keep it; the transport outlives them.
struct WorkerState {
  WorkerState(Transport& through, const std::shared_ptr<TaskResources>& of, const WorkerOptions& with)
      : transport(through),
        resources(of),
        options(with),
        exchange(std::make_shared<StepExchange>(through.clock(), with.exchange)),
        steps(with.steps),
        sessions(through.task(), of, through.clock()),
        changes(std::make_shared<ChangeCalls>(of)),
        stop_calls(std::make_shared<StopCalls>(through.clock())),
        threads(through.clock(),
                {.thread = "lh-part",
                 .owner = "task " + through.task(),
                 .jobs = "parts of steps and other calls of masters"},
                with.threads) {}

  Clock& clock() const { return transport.clock(); }

  Transport& transport;
  const std::shared_ptr<TaskResources> resources;
  const WorkerOptions options;
  const std::shared_ptr<StepExchange> exchange;
  StepTable steps;
  WorkerSessions sessions;
  const std::shared_ptr<ChangeCalls> changes;
  const std::shared_ptr<StopCalls> stop_calls;
  JobThreads threads;
  ShardWrites shard_writes;
  EndedTraining ended_training;
  std::unique_ptr<Watched> watched;  // set before the first call comes
};

}  // namespace longhaul
