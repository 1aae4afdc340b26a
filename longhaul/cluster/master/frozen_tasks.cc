#include "longhaul/cluster/master/frozen_tasks.h"

#include <fmt/format.h>

#include "longhaul/cluster/transport/call_group.h"
#include "longhaul/cluster/transport/methods.h"
#include "longhaul/cluster/transport/task_errors.h"

namespace longhaul {
namespace {

constexpr Seconds kLossIsTold{0.5};

}  // namespace

FrozenTasks::FrozenTasks(std::shared_ptr<SessionTasks> tasks, std::vector<std::string> frozen)
    : tasks_(std::move(tasks)), frozen_(std::move(frozen)), id_(fmt::format("{:016x}", new_incarnation())) {}

FrozenTasks::~FrozenTasks() {
  if (!is_frozen_) return;
  CallGroup calls(tasks_->transport());
  proto::OpenRequest request;
  request.set_session(tasks_->session());
  request.set_snapshot(id_);
  for (const std::string& task : frozen_) calls.start(tasks_->request_to(task, methods::kOpen, to_message(request)));
  calls.leave();
}

void FrozenTasks::freeze(const WaitLimits& limits) {
  try {
    shut_gates(limits);
  } catch (const AbortedError& error) {
    tasks_->wait_for_loss(kLossIsTold);
    tasks_->cancellation().check();
    throw UnavailableError(error.what());  // a lease has ended
  }
}

void FrozenTasks::shut_gates(const WaitLimits& limits) {
  proto::FreezeRequest request;
  request.set_session(tasks_->session());
  request.set_snapshot(id_);
  request.set_lease_secs(kLease.count());
  std::vector<CallRequest> requests;
  for (const std::string& task : frozen_)
    requests.push_back(tasks_->request_to(task, methods::kFreeze, to_message(request)));
  is_frozen_ = true;
  const WaitLimits leased = within_lease(limits);
  std::vector<std::set<int64_t>> committed;
  for (const Message& reply : call_all(tasks_->transport(), std::move(requests), leased)) {
    const auto steps = header_of<proto::FreezeReply>(reply, "Freeze").committed();
    committed.emplace_back(steps.begin(), steps.end());
  }
  resolve(committed, leased);
}

WaitLimits FrozenTasks::within_lease(const WaitLimits& limits) const {
  const Seconds end = tasks_->transport().clock().now() + kLease;
  const bool is_sooner = limits.deadline.count() != 0 && limits.deadline < end;
  return {.deadline = is_sooner ? limits.deadline : end, .cancellation = limits.cancellation};
}

// A task that does not name a step which another one has committed may have prepared it, even after it was frozen. If
// it has nothing to commit it says so, by an error. One whose lease has run out says so when it is to take its
// variables.
void FrozenTasks::resolve(const std::vector<std::set<int64_t>>& committed, const WaitLimits& limits) {
  std::set<int64_t> all;
  for (const std::set<int64_t>& steps : committed) all.insert(steps.begin(), steps.end());
  CallGroup calls(tasks_->transport());
  size_t under_way = 0;
  for (size_t i = 0; i < frozen_.size(); ++i) {
    for (const int64_t step : all) {
      if (committed[i].contains(step)) continue;
      proto::CommitRequest request;
      request.set_step(step);
      request.set_snapshot(id_);
      calls.start(tasks_->request_to(frozen_[i], methods::kCommit, to_message(request)), limits.deadline);
      ++under_way;
    }
  }
  for (; under_way > 0; --under_way) {
    const auto ended = calls.next(limits);
    if (!ended && limits.cancellation != nullptr) limits.cancellation->check();
    if (!ended) throw DeadlineExceededError("the steps under way could not be completed on all tasks for a snapshot");
    const Code code = code_of(ended->reply.error);
    const bool has_nothing = code == Code::kAborted || code == Code::kFailedPrecondition;
    if (code != Code::kOk && !has_nothing) std::rethrow_exception(ended->reply.error);
  }
}

}  // namespace longhaul
