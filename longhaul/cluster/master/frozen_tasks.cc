#include "longhaul/cluster/master/frozen_tasks.h"

#include <fmt/format.h>

#include <utility>

#include "longhaul/cluster/transport/call_group.h"
#include "longhaul/cluster/transport/methods.h"
#include "longhaul/cluster/transport/task_errors.h"

namespace longhaul {
namespace {

constexpr Seconds kLossIsTold{0.5};

std::string new_id() {
  return fmt::format("{:016x}", new_incarnation());
}

// False: another snapshot has the task's gate.
bool add_steps_of(const Message& reply, std::vector<std::set<int64_t>>* committed) {
  const auto frozen = header_of<proto::FreezeReply>(reply, "Freeze");
  committed->emplace_back(frozen.committed().begin(), frozen.committed().end());
  return !frozen.is_anothers();
}

}  // namespace

FrozenTasks::FrozenTasks(std::shared_ptr<SessionTasks> tasks, std::vector<std::string> frozen)
    : tasks_(std::move(tasks)), frozen_(std::move(frozen)), id_(new_id()) {}

FrozenTasks::~FrozenTasks() {
  open();
}

void FrozenTasks::open() {
  if (!std::exchange(is_frozen_, false)) return;
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
  Committed committed;
  WaitLimits leased = within_lease(limits);
  if (!shut_at_once(leased, &committed)) {
    open();
    id_ = new_id();
    leased = within_lease(limits);
    shut_in_turn(leased, &committed);
  }
  resolve(committed, leased);
}

CallRequest FrozenTasks::request_to(const std::string& task, Seconds wait) const {
  proto::FreezeRequest request;
  request.set_session(tasks_->session());
  request.set_snapshot(id_);
  request.set_lease_secs(kLease.count());
  request.set_wait_secs(wait.count());
  return tasks_->request_to(task, methods::kFreeze, to_message(request));
}

bool FrozenTasks::shut_at_once(const WaitLimits& limits, Committed* committed) {
  std::vector<CallRequest> requests;
  for (const std::string& task : frozen_) requests.push_back(request_to(task, Seconds{0}));
  is_frozen_ = true;
  for (const Message& reply : call_all(tasks_->transport(), std::move(requests), limits)) {
    if (!add_steps_of(reply, committed)) return false;
  }
  return true;
}

void FrozenTasks::shut_in_turn(const WaitLimits& limits, Committed* committed) {
  committed->clear();
  is_frozen_ = true;
  for (const std::string& task : frozen_) {
    const std::vector<Message> replies = call_all(tasks_->transport(), {request_to(task, kLease)}, limits);
    if (add_steps_of(replies.at(0), committed)) continue;
    throw UnavailableError(fmt::format("another snapshot keeps task {} from taking part in this one", task));
  }
}

WaitLimits FrozenTasks::within_lease(const WaitLimits& limits) const {
  const Seconds end = tasks_->transport().clock().now() + kLease;
  const bool is_sooner = limits.deadline.count() != 0 && limits.deadline < end;
  return {.deadline = is_sooner ? limits.deadline : end, .cancellation = limits.cancellation};
}

// A task that does not name a step which another one has committed may have prepared it, even after it was frozen. If
// it has nothing to commit it says so, by an error. One whose lease has run out says so when it is to take its
// variables.
void FrozenTasks::resolve(const Committed& committed, const WaitLimits& limits) {
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
