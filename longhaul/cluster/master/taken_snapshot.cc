#include "longhaul/cluster/master/taken_snapshot.h"

#include "longhaul/cluster/transport/call_group.h"
#include "longhaul/cluster/transport/methods.h"

namespace longhaul {

std::vector<TakenSnapshot::Value> TakenSnapshot::places_of(const ClusterRun& run) {
  std::vector<Value> values(run.fetches);
  for (const ClusterRun::Part& part : run.parts) {
    for (const RunPart::Named& fetch : part.fetches) values[static_cast<size_t>(fetch.index)] = {part.task, fetch.name};
  }
  return values;
}

TakenSnapshot::TakenSnapshot(std::shared_ptr<SessionTasks> tasks, std::shared_ptr<const ClusterRun> run,
                             std::optional<size_t> global_step, const WaitLimits& limits)
    : tasks_(std::move(tasks)), run_(std::move(run)), frozen_(tasks_, run_->tasks()), values_(places_of(*run_)) {
  if (global_step) global_step_name_ = values_.at(*global_step).name;
  frozen_.freeze(limits);
  try {
    take(limits);
  } catch (const AbortedError& error) {
    tasks_->cancellation().check();
    throw UnavailableError(error.what());
  }
}

void TakenSnapshot::renew_if_due(const WaitLimits& limits) {
  if (tasks_->transport().clock().now() - renewed_ >= kLease / 3) renew(limits);
}

void TakenSnapshot::take(const WaitLimits& limits) {
  renewed_ = tasks_->transport().clock().now();
  std::vector<CallRequest> requests;
  for (const ClusterRun::Part& part : run_->parts)
    requests.push_back(tasks_->request_to(part.task, methods::kTake, to_message(request_for(part))));
  for (const Message& reply : call_all(tasks_->transport(), std::move(requests), limits)) {
    const auto taken = header_of<proto::TakeReply>(reply, "Take");
    if (taken.has_global_step()) global_step_ = taken.global_step();
  }
}

proto::TakeRequest TakenSnapshot::request_for(const ClusterRun::Part& part) const {
  proto::TakeRequest request;
  request.set_session(tasks_->session());
  request.set_snapshot(frozen_.id());
  request.set_graph_handle(part.handle);
  request.set_lease_secs(kLease.count());
  for (const RunPart::Named& fetch : part.fetches) {
    if (fetch.name == global_step_name_) request.set_global_step(fetch.name);
  }
  return request;
}

}  // namespace longhaul
