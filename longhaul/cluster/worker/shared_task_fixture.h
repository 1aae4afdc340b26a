#pragma once

#include <memory>
#include <string>
#include <vector>

#include "longhaul/host/queues/queue.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"

namespace longhaul {

// A task without a network, and sessions in this process that share its variables and queues. Any thread.
class SharedTask {
 public:
  SharedTask() { install_runtime(); }

  std::unique_ptr<Session> new_session(Graph& graph, const SessionOptions& options) const {
    return std::make_unique<DirectSession>(graph, options, resources_);
  }
  std::vector<DeviceAttributes> devices() const { return resources_->devices(); }
  void reset(const std::vector<std::string>& containers) const { resources_->reset(containers); }
  // How many runs wait in that queue.
  size_t waiting_in(const Operation& queue) const {
    return dynamic_cast<const Queue&>(*resource_of(queue, resources_->host_resources())).waiting();
  }

 private:
  const std::shared_ptr<TaskResources> resources_ = std::make_shared<TaskResources>(TaskOptions{.job = "local0"});
};

}  // namespace longhaul
