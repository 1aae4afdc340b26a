#include "longhaul/runtime/state/session_state.h"

#include "longhaul/base/log.h"

namespace longhaul {

SessionState::SessionState(std::shared_ptr<TaskResources> task, bool isolated, const SessionOptions& options)
    : task_(std::move(task)),
      containers_(isolated ? std::make_shared<Containers>(task_->containers().get()) : task_->containers()),
      snapshots_(task_->clock()),
      allows_soft_placement_(options.allow_soft_placement),
      logs_placement_(options.log_device_placement) {
  task_->add_session(cancellation_);
}

void SessionState::log_placement(const Operation& op, const std::string& device) {
  if (!logs_placement()) return;
  {
    const MutexLock lock(mutex_);
    if (!logged_.insert(op).second) return;
  }
  log_info("{}: ({}): {}", op.name(), op.type(), device);
}

}  // namespace longhaul
