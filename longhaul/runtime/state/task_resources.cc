#include "longhaul/runtime/state/task_resources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "longhaul/base/error.h"

namespace longhaul {

TaskResources::TaskResources(TaskOptions options)
    : options_(std::move(options)),
      devices_(options_.job, options_.task, options_.cpu_devices, options_.most_gpus),
      containers_(std::make_shared<Containers>(options_.job, options_.snapshot_memory, *options_.clock)),
      gate_(*options_.clock) {}

void TaskResources::add_session(const std::shared_ptr<Cancellation>& session) {
  const MutexLock lock(mutex_);
  std::erase_if(sessions_, [](const auto& known) { return known.expired(); });
  sessions_.push_back(session);
}

// First the sessions end, then the containers are emptied, at a moment without sessions: one that is made in between
// must not see variables that are about to go.
void TaskResources::reset(const std::vector<std::string>& containers) {
  const std::string why =
      containers.empty() ? "all containers of the task were reset (Session::reset); make a new session"
                         : fmt::format("the containers {} of the task were reset (Session::reset); make a new session",
                                       fmt::join(containers, ", "));
  std::vector<std::shared_ptr<Resource>> removed;
  do {
    abort_sessions(why);
  } while (!remove_unless_used(containers, &removed));
  for (const auto& resource : removed) resource->drop(why);
  changes().bump();
}

void TaskResources::abort_sessions(const std::string& why) {
  std::vector<std::weak_ptr<Cancellation>> sessions;
  {
    const MutexLock lock(mutex_);
    sessions.swap(sessions_);
  }
  for (const auto& session : sessions) {
    if (const auto known = session.lock()) known->abort(why);
  }
}

bool TaskResources::remove_unless_used(const std::vector<std::string>& containers,
                                       std::vector<std::shared_ptr<Resource>>* removed) {
  const MutexLock lock(mutex_);
  if (std::any_of(sessions_.begin(), sessions_.end(), [](const auto& known) { return !known.expired(); })) return false;
  variables().remove(containers);
  *removed = host_resources().remove(containers);
  return true;
}

}  // namespace longhaul
