#pragma once

#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/grpc/server/running_server.h"

namespace longhaul {

// The servers of this process: a session on one of them needs no connection. Any thread.
class LocalServers {
 public:
  void add(const std::shared_ptr<RunningServer>& server) EXCLUDES(mutex_);
  // The one that is reached there; null: none, or it has gone. One that has stopped is found only if there is no other,
  // so that a session on it fails at once.
  std::shared_ptr<RunningServer> find(const std::string& address) EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::vector<std::weak_ptr<RunningServer>> servers_ GUARDED_BY(mutex_);
};

LocalServers& local_servers();

// The server of the target 'local': made when it is first asked for, and never destroyed.
std::shared_ptr<RunningServer> shared_local_server();

}  // namespace longhaul
