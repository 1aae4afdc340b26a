#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/cluster/tasks/session_tasks.h"
#include "longhaul/cluster/transport/call_group.h"
#include "longhaul/session/model_watch.h"

namespace longhaul {

// Waits until something has changed on the tasks of a session that decides whether a model is ready: a variable was
// initialised, a checkpoint restored, a container reset. One call is parked on each task; nobody polls. One thread.
//
//   const auto changes = session.changes();  // from here on nothing is missed
//   while (!is_ready(session)) changes->wait(limits);
class TaskChanges : public ModelWatch {
 public:
  // `changed`: see ModelWatching::watch_model(); empty: nobody is told.
  explicit TaskChanges(std::shared_ptr<SessionTasks> tasks, std::function<void()> changed = {});

  bool take_change() override;

  // True: there was a change since the last call; what a task says first counts as one, because it may have come after
  // the caller's look. So do tasks that runs have named meanwhile. False: the deadline has come. AbortedError: the
  // session is lost; CancelledError: it was closed; the error of a task.
  bool wait(Seconds deadline);

 private:
  bool ask_new_tasks();  // true: there are some
  void ask(const std::string& task);
  void take(const CallGroup::Ended& ended);

  const std::shared_ptr<SessionTasks> tasks_;
  CallGroup calls_;
  std::vector<std::string> asked_;               // by call
  std::map<std::string, uint64_t> generations_;  // of the tasks that were asked; 0: not known yet
  std::optional<Cancellation::Watch> end_;       // tells of the session's end
};

}  // namespace longhaul
