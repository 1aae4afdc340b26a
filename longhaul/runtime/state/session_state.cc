#include "longhaul/runtime/state/session_state.h"

namespace longhaul {

SessionState::SessionState(std::shared_ptr<TaskResources> task, bool isolated)
    : task_(std::move(task)),
      containers_(isolated ? std::make_shared<Containers>(task_->containers().get()) : task_->containers()),
      snapshots_(task_->clock()) {
  task_->add_session(cancellation_);
}

}  // namespace longhaul
