#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "longhaul/cluster/tasks/session_tasks.h"
#include "longhaul/session/stop_notice.h"

namespace longhaul {

// Parks a call on each task of a session, which the task answers once it is asked to stop. A line that breaks is tried
// again as long as the session lives. The calls end with this, and with the session's tasks: a task that goes waits for
// the sessions whose calls it has, so a session keeps them until it is closed, also when nobody listens any more: a
// chief that is stopped itself saves after its services have ended. Any thread.
class StopNotices : public std::enable_shared_from_this<StopNotices> {
 public:
  // For tasks that the session uses now, and later. `noticed`: see StopNoticing.
  static std::shared_ptr<StopNotices> create(const std::shared_ptr<SessionTasks>& tasks,
                                             std::function<void(const StopNotice&)> noticed);
  ~StopNotices();

  StopNotices(const std::shared_ptr<SessionTasks>& tasks, std::function<void(const StopNotice&)> noticed)
      : tasks_(tasks), noticed_(std::move(noticed)) {}  // for create()

 private:
  void begin(const std::string& task) EXCLUDES(mutex_);
  void ask(const std::string& task, int attempt) EXCLUDES(mutex_);
  void answered(const std::string& task, int attempt, const CallReply& reply) EXCLUDES(mutex_);

  const std::shared_ptr<SessionTasks> tasks_;
  const std::function<void(const StopNotice&)> noticed_;
  std::shared_ptr<const void> told_of_use_;  // set by create()
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<OutgoingCall>> calls_ GUARDED_BY(mutex_);  // null: not begun yet
};

}  // namespace longhaul
