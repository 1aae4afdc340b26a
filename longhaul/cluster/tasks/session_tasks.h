#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/cluster/tasks/ask_status.h"
#include "longhaul/cluster/tasks/doubtful_steps.h"
#include "longhaul/cluster/transport/peer_watch.h"
#include "longhaul/placement/device_list.h"

namespace longhaul {

// The tasks of a session: those that it may use, and those that its runs have named. Only the latter are contacted, and
// each is watched from then on. One that dies, is cut off or ends the session takes the whole session with it:
// cancellation() is aborted, which ends the waits of all runs. Any thread.
//
//   known --use--> used --its Watch ends, or lost()--> the session is lost
class SessionTasks : public std::enable_shared_from_this<SessionTasks> {
 public:
  struct Options {
    std::string session{};                        // its handle: 16 hex digits
    bool isolated = false;                        // it has containers of its own
    std::string home{};                           // where the session's own work is; empty: the transport's task
    std::vector<std::string> tasks{};             // of the cluster; the home is one of them
    std::map<std::string, std::string> called{};  // the addresses of tasks that are called by these, not by their names
    std::shared_ptr<const void> keeps{};          // what the transport needs to live
    std::vector<std::string> device_filters{};    // as in DeviceList
    Seconds task_wait{600};                       // with a task that is not there
  };

  // InvalidArgumentError: a filter or a task's name is malformed, or the home is not among them. The transport must
  // outlive the session, unless the options keep it.
  static std::shared_ptr<SessionTasks> create(Transport& transport, Options options);

  const std::string& session() const { return options_.session; }
  Transport& transport() const { return transport_; }
  // Whether the program is that of a task of the cluster, and no client of one.
  bool is_in_task() const { return home() == transport_.task(); }
  // Of all that the session does: aborted when it is lost, cancelled when it is closed.
  Cancellation& cancellation() { return cancellation_; }

  // As far as the tasks have been asked.
  DeviceList devices() const EXCLUDES(mutex_);

  // Asks and watches those of the tasks that are not used yet. True: there were some, so their devices are known only
  // now. Throws what ask_status() throws.
  bool use(const std::vector<std::string>& tasks, const WaitLimits& limits) EXCLUDES(mutex_);
  std::vector<std::string> used() const EXCLUDES(mutex_);
  // Tells of each task that is used, now or later, without a lock, as long as what it returns is kept; of one that
  // begins to be used meanwhile, perhaps twice. There may be several who are told.
  std::shared_ptr<const void> on_use(std::function<void(const std::string& task)> told) EXCLUDES(mutex_);
  uint64_t incarnation(const std::string& task) const EXCLUDES(mutex_);  // of a task that is used
  // How the session's tasks call each other, and are called: by name, or by address.
  std::string called(const std::string& task) const;
  CallRequest request_to(const std::string& task, const char* method, Message message) const;

  // Of all tasks that the filters leave. Those that are used are known; the others are asked, for 2 s. One that has not
  // answered by then is left out, with a warning that names it. Throws what the limits and the session's loss throw,
  // and the error of a task that refuses to answer.
  std::vector<DeviceAttributes> list_devices(const WaitLimits& limits) EXCLUDES(mutex_);

  // The session is lost, if it was not already: AbortedError, in the words that TensorFlow uses, with the cause.
  void lose(const std::string& task, const std::exception_ptr& cause);
  // Waits until it is lost or closed, for at most that long: another task may see a death sooner than this one.
  void wait_for_loss(Seconds at_most);

  // Warns, once, that the session makes steps after that chief has ended the training.
  void tell_unsaved_steps(const std::string& chief);

  DoubtfulSteps& doubtful_steps() { return doubtful_steps_; }

  // An id that no step of any master has, with high probability.
  int64_t new_step();
  // Steps that the task may forget: told to it with its next part.
  void add_finished(const std::string& task, int64_t step) EXCLUDES(mutex_);
  std::vector<int64_t> take_finished(const std::string& task) EXCLUDES(mutex_);

  void end_watches() EXCLUDES(mutex_);  // the tasks see it as the session's end

  SessionTasks(Transport& transport, Options options);  // for create()

 private:
  using Told = std::function<void(const std::string& task)>;
  struct Link {
    TaskStatus status;
    bool is_used = false;
    std::unique_ptr<PeerWatch> watch;
    std::vector<int64_t> finished;
  };

  const std::string& home() const { return options_.home.empty() ? transport_.task() : options_.home; }
  using Question = std::function<std::map<std::string, TaskStatus>(const std::vector<std::string>& called)>;
  std::map<std::string, TaskStatus> ask(const std::vector<std::string>& tasks, const Question& question) const;
  std::vector<DeviceAttributes> devices_of(const std::string& task,
                                           const std::map<std::string, TaskStatus>& answers) const EXCLUDES(mutex_);
  std::vector<std::string> not_used(const std::vector<std::string>& tasks) const EXCLUDES(mutex_);
  void add(const std::string& task, TaskStatus status) EXCLUDES(mutex_);
  void watch(const std::string& task, uint64_t incarnation) EXCLUDES(mutex_);

  Transport& transport_;
  const Options options_;
  Cancellation cancellation_;
  const uint64_t first_step_;
  std::atomic<uint64_t> steps_{0};
  DoubtfulSteps doubtful_steps_;
  mutable Mutex mutex_;
  std::map<std::string, Link> links_ GUARDED_BY(mutex_);
  bool has_ended_ GUARDED_BY(mutex_) = false;
  std::atomic<bool> told_unsaved_{false};
  std::vector<std::weak_ptr<const Told>> told_of_use_ GUARDED_BY(mutex_);
};

// Runs what uses several tasks. The death of one may be noticed a moment after it has broken a line: then the error is
// that of the lost session.
template <typename Body>
auto with_losses_told(SessionTasks& tasks, Body&& body) {
  constexpr Seconds kDeathIsTold{0.5};
  try {
    return body();
  } catch (const UnavailableError&) {
    tasks.wait_for_loss(kDeathIsTold);
    tasks.cancellation().check();
    throw;
  }
}

}  // namespace longhaul
