#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "longhaul/cluster/worker/registered_part.h"
#include "longhaul/runtime/state/session_state.h"

namespace longhaul {

// What a snapshot has taken on a task: a value for each name.
struct TakenValues {
  std::vector<std::string> names;
  std::vector<Tensor> values;
};

// A master's session on a task: the parts that it has registered, and the snapshots that it is taking. Steps that are
// under way keep it. Any thread may call.
class WorkerSession {
 public:
  WorkerSession(std::string id, IncomingCall::Caller master, std::shared_ptr<SessionState> state)
      : id_(std::move(id)), master_(std::move(master)), state_(std::move(state)) {}

  const std::string& id() const { return id_; }
  const IncomingCall::Caller& master() const { return master_; }
  const std::shared_ptr<SessionState>& state() const { return state_; }

  // The first of a handle stays; returns it.
  std::shared_ptr<const RegisteredPart> add(const std::string& handle, std::shared_ptr<const RegisteredPart> part)
      EXCLUDES(mutex_);
  std::shared_ptr<const RegisteredPart> find(const std::string& handle) const EXCLUDES(mutex_);  // null: none
  // AbortedError: there is none.
  std::shared_ptr<const RegisteredPart> part(const std::string& handle) const EXCLUDES(mutex_);
  void remove(const std::string& handle) EXCLUDES(mutex_);  // may be called again
  size_t parts() const EXCLUDES(mutex_);

  // A snapshot that keeps the gate shut, until it has taken its values or is let go: then what comes late for it must
  // not shut the gate again. False: it is there already, or is over.
  bool add_snapshot(const std::string& snapshot) EXCLUDES(mutex_);
  void end_snapshot(const std::string& snapshot) EXCLUDES(mutex_);
  bool has_ended(const std::string& snapshot) const EXCLUDES(mutex_);  // of the last 1000
  std::vector<std::string> snapshots() const EXCLUDES(mutex_);

  // Keeps what the snapshot has taken with that part, for the lease.
  void keep_taken(const std::string& snapshot, const std::shared_ptr<const RegisteredPart>& part,
                  std::vector<Tensor> values, Seconds lease) EXCLUDES(mutex_);
  // nullopt: it has taken nothing, or the lease has ended. Renews the lease. Whoever writes a shard, or reads values
  // back for a saver on another task, gets them here.
  std::optional<TakenValues> taken(const std::string& snapshot, Seconds lease) EXCLUDES(mutex_);
  void drop_taken(const std::string& snapshot) EXCLUDES(mutex_);

 private:
  const std::string id_;
  const IncomingCall::Caller master_;
  const std::shared_ptr<SessionState> state_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const RegisteredPart>> parts_ GUARDED_BY(mutex_);
  std::set<std::string> snapshots_ GUARDED_BY(mutex_);
  std::deque<std::string> ended_snapshots_ GUARDED_BY(mutex_);
  std::map<std::string, std::vector<std::string>> taken_names_ GUARDED_BY(mutex_);  // by snapshot
};

// The sessions of a task, by their masters' names for them. A session begins with its master's Watch and ends with it.
// Any thread may call.
class WorkerSessions {
 public:
  WorkerSessions(std::string task, std::shared_ptr<TaskResources> resources, Clock& clock)
      : task_(std::move(task)), resources_(std::move(resources)), clock_(clock) {}

  // Begins it, or joins in it. AbortedError: it has ended, or is another master's. UnavailableError: stop().
  std::shared_ptr<WorkerSession> open(const std::string& id, const IncomingCall::Caller& master, bool isolated)
      EXCLUDES(mutex_);
  // AbortedError, in the words that TensorFlow uses: there is none.
  std::shared_ptr<WorkerSession> find(const std::string& id, const IncomingCall::Caller& master) EXCLUDES(mutex_);
  // The same, but waits for the session's Watch, which may be on its way, for that long.
  std::shared_ptr<WorkerSession> find_soon(const std::string& id, const IncomingCall::Caller& master, Seconds timeout)
      EXCLUDES(mutex_);

  // Null: it is not there, or has ended.
  std::shared_ptr<WorkerSession> end(const std::string& id) EXCLUDES(mutex_);
  bool has_ended(const WorkerSession& session) const EXCLUDES(mutex_);
  // Ends the waits, and refuses what comes later. Returns the sessions that were there.
  std::vector<std::shared_ptr<WorkerSession>> stop() EXCLUDES(mutex_);
  std::vector<std::string> ids() const EXCLUDES(mutex_);
  size_t size() const EXCLUDES(mutex_);
  // Waits for the end of the last one; false: there are some at that time. After stop() there are none.
  bool wait_until_none(Seconds until) EXCLUDES(mutex_);

 private:
  std::shared_ptr<WorkerSession> known(const std::string& id, const IncomingCall::Caller& master) REQUIRES(mutex_);
  bool ended(const std::string& id) const REQUIRES(mutex_);

  const std::string task_;
  const std::shared_ptr<TaskResources> resources_;
  Clock& clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::shared_ptr<WorkerSession>> sessions_ GUARDED_BY(mutex_);
  std::deque<std::string> ended_ GUARDED_BY(mutex_);  // the last of them, so that what comes late does not revive them
  bool is_stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace longhaul
