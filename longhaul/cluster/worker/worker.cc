#include "longhaul/cluster/worker/worker.h"

#include "longhaul/cluster/worker/session_calls.h"
#include "longhaul/cluster/worker/shard_calls.h"
#include "longhaul/cluster/worker/snapshot_calls.h"
#include "longhaul/cluster/worker/step_calls.h"

namespace longhaul {

Worker::Worker(Transport& transport, std::shared_ptr<TaskResources> resources, const WorkerOptions& options)
    : state_(std::make_shared<WorkerState>(transport, std::move(resources), options)) {
  serve_sessions(state_);
  serve_steps(state_);
  serve_snapshots(state_);
  serve_shards(state_);
  serve_deliver(transport, state_->exchange);
  serve_status(state_);
}

Worker::~Worker() {
  stop("it is no longer needed", Seconds{10});
}

size_t Worker::announce_stop(Seconds grace) {
  return state_->stop_calls->announce(grace);
}

bool Worker::wait_until_unused(Seconds until) {
  return state_->sessions.wait_until_none(until);
}

// First nothing new begins; then what is there ends.
void Worker::request_stop(const std::string& why) {
  state_->threads.request_stop(why);
  end_all_sessions(*state_, "task " + state_->transport.task() + " was stopped: " + why);
  state_->exchange->stop(why);
  state_->changes->stop();
  state_->stop_calls->stop();
}

bool Worker::stop(const std::string& why, Seconds timeout) {
  request_stop(why);
  return state_->threads.stop(timeout);
}

Worker::Counts Worker::counts() const {
  return {.sessions = state_->sessions.size(),
          .steps = state_->steps.all().size(),
          .jobs = state_->threads.busy(),
          .waits_for_changes = state_->changes->size(),
          .bundles = state_->exchange->counts().bundles,
          .gate_is_shut = state_->resources->gate().is_shut()};
}

}  // namespace longhaul
