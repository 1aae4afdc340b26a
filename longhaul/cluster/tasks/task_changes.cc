#include "longhaul/cluster/tasks/task_changes.h"

#include "longhaul/cluster/transport/methods.h"
#include "longhaul/cluster/transport/pause.h"

namespace longhaul {

TaskChanges::TaskChanges(std::shared_ptr<SessionTasks> tasks, std::function<void()> changed)
    : tasks_(std::move(tasks)), calls_(tasks_->transport(), /*timeout=*/Seconds{365 * 24 * 3600.0}, changed) {
  if (changed) end_.emplace(tasks_->cancellation(), std::move(changed));
  ask_new_tasks();
}

bool TaskChanges::take_change() {
  tasks_->cancellation().check();
  return wait(tasks_->transport().clock().now());
}

bool TaskChanges::wait(Seconds deadline) {
  if (ask_new_tasks()) return true;
  const WaitLimits limits{.deadline = deadline, .cancellation = &tasks_->cancellation()};
  if (calls_.under_way() == 0) pause(tasks_->transport().clock(), deadline, limits.cancellation);
  auto ended = calls_.next(limits);
  if (!ended) {
    tasks_->cancellation().check();
    return false;
  }
  // What has come meanwhile is the same change.
  for (; ended; ended = calls_.next({.deadline = tasks_->transport().clock().now()})) take(*ended);
  return true;
}

bool TaskChanges::ask_new_tasks() {
  bool is_new = false;
  for (const std::string& task : tasks_->used()) {
    if (!generations_.emplace(task, 0).second) continue;
    is_new = true;
    ask(task);
  }
  return is_new;
}

void TaskChanges::ask(const std::string& task) {
  proto::WaitForChangeRequest request;
  request.set_generation(generations_.at(task));
  asked_.push_back(task);
  calls_.start(tasks_->request_to(task, methods::kWaitForChange, to_message(request)));
}

void TaskChanges::take(const CallGroup::Ended& ended) {
  if (ended.reply.error != nullptr) std::rethrow_exception(ended.reply.error);
  const std::string task = asked_[ended.call];
  generations_[task] = header_of<proto::WaitForChangeReply>(ended.reply.message, "WaitForChange").generation();
  ask(task);
}

}  // namespace longhaul
