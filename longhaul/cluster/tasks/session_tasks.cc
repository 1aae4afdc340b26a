#include "longhaul/cluster/tasks/session_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/excerpt.h"
#include "longhaul/base/log.h"
#include "longhaul/cluster/transport/pause.h"
#include "longhaul/cluster/transport/task_errors.h"

namespace longhaul {
namespace {

constexpr Seconds kDevicesWait{2};  // for tasks that no run has used

// Another number for each number, so well mixed that neighbours have nothing in common (splitmix64).
uint64_t mixed_bits(uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

// A task that the session calls by another name than it does itself has its devices under the session's name.
void rename_devices(const std::string& task, std::vector<DeviceAttributes>* devices) {
  const DeviceSpec place = DeviceSpec::parse(task);
  for (DeviceAttributes& device : *devices) {
    DeviceSpec spec = DeviceSpec::parse(device.name);
    spec.job = place.job;
    spec.replica = place.replica;
    spec.task = place.task;
    device.name = spec.to_string();
  }
}

}  // namespace

std::shared_ptr<SessionTasks> SessionTasks::create(Transport& transport, Options options) {
  auto tasks = std::make_shared<SessionTasks>(transport, std::move(options));
  tasks->devices();  // checks the filters
  return tasks;
}

SessionTasks::SessionTasks(Transport& transport, Options options)
    : transport_(transport), options_(std::move(options)), first_step_(new_incarnation()), doubtful_steps_(transport) {
  MutexLock lock(mutex_);
  for (const std::string& task : options_.tasks) links_[task];
}

DeviceList SessionTasks::devices() const {
  std::vector<TaskDevices> tasks;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, link] : links_) {
      TaskDevices task{.task = DeviceSpec::parse(name), .incarnation = link.status.incarnation};
      for (const DeviceAttributes& device : link.status.devices) task.devices.push_back(DeviceSpec::parse(device.name));
      tasks.push_back(std::move(task));
    }
  }
  return DeviceList(std::move(tasks), DeviceSpec::parse(home()), options_.device_filters);
}

bool SessionTasks::use(const std::vector<std::string>& tasks, const WaitLimits& limits) {
  cancellation_.check();
  const std::vector<std::string> fresh = not_used(tasks);
  if (fresh.empty()) return false;
  const Question wait_for_all = [&](const std::vector<std::string>& asked) {
    return ask_status(transport_, asked, options_.task_wait, limits);
  };
  for (auto& [task, status] : ask(fresh, wait_for_all)) add(task, std::move(status));
  return true;
}

std::string SessionTasks::called(const std::string& task) const {
  const auto address = options_.called.find(task);
  return address == options_.called.end() ? task : address->second;
}

// Those that have answered, by the session's names.
std::map<std::string, TaskStatus> SessionTasks::ask(const std::vector<std::string>& tasks,
                                                    const Question& question) const {
  std::vector<std::string> asked;
  for (const std::string& task : tasks) asked.push_back(called(task));
  const std::map<std::string, TaskStatus> answers = question(asked);
  std::map<std::string, TaskStatus> by_name;
  for (const std::string& task : tasks) {
    const auto answer = answers.find(called(task));
    if (answer == answers.end()) continue;
    TaskStatus& status = by_name[task] = answer->second;
    if (called(task) != task) rename_devices(task, &status.devices);
  }
  return by_name;
}

std::vector<std::string> SessionTasks::not_used(const std::vector<std::string>& tasks) const {
  std::vector<std::string> found;
  MutexLock lock(mutex_);
  for (const std::string& task : tasks) {
    if (!links_.at(task).is_used) found.push_back(task);
  }
  return found;
}

void SessionTasks::add(const std::string& task, TaskStatus status) {
  const uint64_t incarnation = status.incarnation;
  std::vector<std::weak_ptr<const Told>> listeners;
  {
    MutexLock lock(mutex_);
    Link& link = links_.at(task);
    if (has_ended_ || link.is_used) return;
    link.status = std::move(status);
    link.is_used = true;
    listeners = told_of_use_;
  }
  watch(task, incarnation);
  for (const auto& listener : listeners) {
    if (const auto told = listener.lock()) (*told)(task);
  }
}

std::shared_ptr<const void> SessionTasks::on_use(std::function<void(const std::string& task)> told) {
  const auto kept = std::make_shared<const Told>(std::move(told));
  {
    MutexLock lock(mutex_);
    std::erase_if(told_of_use_, [](const auto& listener) { return listener.expired(); });
    told_of_use_.push_back(kept);
  }
  for (const std::string& task : used()) (*kept)(task);
  return kept;
}

void SessionTasks::watch(const std::string& task, uint64_t incarnation) {
  auto watch = std::make_unique<PeerWatch>(
      transport_, called(task), incarnation, options_.session,
      [weak = weak_from_this(), task](const std::exception_ptr& error) {
        if (const auto tasks = weak.lock()) tasks->lose(task, error);
      },
      options_.isolated);
  MutexLock lock(mutex_);
  if (!has_ended_) links_.at(task).watch.swap(watch);
}

std::vector<std::string> SessionTasks::used() const {
  std::vector<std::string> tasks;
  MutexLock lock(mutex_);
  for (const auto& [task, link] : links_) {
    if (link.is_used) tasks.push_back(task);
  }
  return tasks;
}

uint64_t SessionTasks::incarnation(const std::string& task) const {
  MutexLock lock(mutex_);
  return links_.at(task).status.incarnation;
}

CallRequest SessionTasks::request_to(const std::string& task, const char* method, Message message) const {
  return {.task = called(task), .method = method, .incarnation = incarnation(task), .message = std::move(message)};
}

std::vector<DeviceAttributes> SessionTasks::list_devices(const WaitLimits& limits) {
  cancellation_.check();
  std::vector<std::string> names;
  const DeviceList known = devices();
  for (const TaskDevices& task : known.tasks()) names.push_back(task.task.to_string());
  std::map<std::string, TaskStatus> answers = ask(not_used(names), [&](const std::vector<std::string>& asked) {
    return status_of_those_there(transport_, asked, std::min(options_.task_wait, kDevicesWait), limits);
  });
  std::vector<DeviceAttributes> all;
  for (const std::string& name : names) {
    const std::vector<DeviceAttributes> found = devices_of(name, answers);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

// None, and a warning: it has not answered.
std::vector<DeviceAttributes> SessionTasks::devices_of(const std::string& task,
                                                       const std::map<std::string, TaskStatus>& answers) const {
  if (const auto answer = answers.find(task); answer != answers.end()) return answer->second.devices;
  {
    MutexLock lock(mutex_);
    const Link& link = links_.at(task);
    if (link.is_used) return link.status.devices;
  }
  log_warning("the list of devices has none of {}, which does not answer: start it, and ask again",
              task_text(task, transport_.address_of(called(task))));
  return {};
}

void SessionTasks::lose(const std::string& task, const std::exception_ptr& cause) {
  cancellation_.abort(fmt::format(
      "From {0}:\nSession handle is not found: {1}. Possibly this worker (\"{0}\") just restarted. Make a new session. "
      "The cause: {2}",
      task, options_.session, message_of(cause)));
}

void SessionTasks::wait_for_loss(Seconds at_most) {
  Clock& clock = transport_.clock();
  pause(clock, clock.now() + at_most, &cancellation_);
}

void SessionTasks::tell_unsaved_steps(const std::string& chief) {
  if (told_unsaved_.exchange(true)) return;
  log_warning(
      "{} has ended the training, and this session still makes steps: nobody saves them. End the training of "
      "all tasks at the same step, or start the chief again",
      excerpt(chief));
}

int64_t SessionTasks::new_step() {
  const uint64_t bits = mixed_bits(first_step_ + steps_.fetch_add(1)) >> 2;
  return bits != 0 ? static_cast<int64_t>(bits) : 1;
}

void SessionTasks::add_finished(const std::string& task, int64_t step) {
  MutexLock lock(mutex_);
  links_.at(task).finished.push_back(step);
}

std::vector<int64_t> SessionTasks::take_finished(const std::string& task) {
  MutexLock lock(mutex_);
  return std::exchange(links_.at(task).finished, {});
}

void SessionTasks::end_watches() {
  std::vector<std::unique_ptr<PeerWatch>> watches;
  MutexLock lock(mutex_);
  has_ended_ = true;
  for (auto& [task, link] : links_) watches.push_back(std::move(link.watch));
}

}  // namespace longhaul
