#include "longhaul/cluster/worker/worker_sessions.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/excerpt.h"

namespace longhaul {
namespace {

// The last ids of something that has ended, so that what comes late does not revive it.
constexpr size_t kMostEndedIds = 1000;

bool is_among_last(const std::string& id, const std::deque<std::string>& last) {
  return std::find(last.begin(), last.end(), id) != last.end();
}

void add_to_last(const std::string& id, std::deque<std::string>* last) {
  last->push_back(id);
  if (last->size() > kMostEndedIds) last->pop_front();
}

// It is kept after the session has ended.
void check_session_id(const std::string& id) {
  constexpr size_t kLongestId = 200;
  if (id.size() <= kLongestId) return;
  throw InvalidArgumentError(
      fmt::format("the id of a session has {} bytes; {} are the limit: {}", id.size(), kLongestId, excerpt(id)));
}

// WK-3
AbortedError session_not_found(const std::string& id, const std::string& task) {
  return AbortedError(
      fmt::format("Session handle is not found: {}. Possibly this worker (\"{}\") just restarted.", excerpt(id), task));
}

}  // namespace

std::shared_ptr<const RegisteredPart> WorkerSession::add(const std::string& handle,
                                                         std::shared_ptr<const RegisteredPart> part) {
  MutexLock lock(mutex_);
  return parts_.emplace(handle, std::move(part)).first->second;
}

std::shared_ptr<const RegisteredPart> WorkerSession::find(const std::string& handle) const {
  MutexLock lock(mutex_);
  const auto found = parts_.find(handle);
  return found == parts_.end() ? nullptr : found->second;
}

std::shared_ptr<const RegisteredPart> WorkerSession::part(const std::string& handle) const {
  if (auto part = find(handle)) return part;
  throw AbortedError(fmt::format("Graph handle is not found: {}", handle));  // WK-5
}

void WorkerSession::remove(const std::string& handle) {
  std::shared_ptr<const RegisteredPart> removed;  // destroyed without the lock
  MutexLock lock(mutex_);
  const auto found = parts_.find(handle);
  if (found == parts_.end()) return;
  removed = std::move(found->second);
  parts_.erase(found);
}

size_t WorkerSession::parts() const {
  MutexLock lock(mutex_);
  return parts_.size();
}

bool WorkerSession::add_snapshot(const std::string& snapshot) {
  MutexLock lock(mutex_);
  return !is_among_last(snapshot, ended_snapshots_) && snapshots_.insert(snapshot).second;
}

void WorkerSession::end_snapshot(const std::string& snapshot) {
  MutexLock lock(mutex_);
  snapshots_.erase(snapshot);
  if (!is_among_last(snapshot, ended_snapshots_)) add_to_last(snapshot, &ended_snapshots_);
}

bool WorkerSession::has_ended(const std::string& snapshot) const {
  MutexLock lock(mutex_);
  return is_among_last(snapshot, ended_snapshots_);
}

std::vector<std::string> WorkerSession::snapshots() const {
  MutexLock lock(mutex_);
  return {snapshots_.begin(), snapshots_.end()};
}

void WorkerSession::keep_taken(const std::string& snapshot, const std::shared_ptr<const RegisteredPart>& part,
                               std::vector<Tensor> values, Seconds lease) {
  state_->snapshots().put(snapshot, std::move(values), lease);
  MutexLock lock(mutex_);
  taken_names_[snapshot] = part->fetches;
}

std::optional<TakenValues> WorkerSession::taken(const std::string& snapshot, Seconds lease) {
  std::optional<std::vector<Tensor>> values = state_->snapshots().find(snapshot, lease);
  MutexLock lock(mutex_);
  const auto names = taken_names_.find(snapshot);
  if (names == taken_names_.end()) return std::nullopt;
  if (values) return TakenValues{names->second, *std::move(values)};
  taken_names_.erase(names);
  return std::nullopt;
}

void WorkerSession::drop_taken(const std::string& snapshot) {
  state_->snapshots().drop(snapshot);
  MutexLock lock(mutex_);
  taken_names_.erase(snapshot);
}

bool WorkerSessions::ended(const std::string& id) const {
  return is_among_last(id, ended_);
}

std::shared_ptr<WorkerSession> WorkerSessions::known(const std::string& id, const IncomingCall::Caller& master) {
  if (is_stopped_) throw UnavailableError(fmt::format("task {} is being stopped", task_));
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return nullptr;
  if (found->second->master().incarnation != master.incarnation) throw session_not_found(id, task_);
  return found->second;
}

std::shared_ptr<WorkerSession> WorkerSessions::open(const std::string& id, const IncomingCall::Caller& master,
                                                    bool isolated) {
  MutexLock lock(mutex_);
  if (auto session = known(id, master)) return session;
  if (ended(id)) throw session_not_found(id, task_);
  check_session_id(id);
  auto session = std::make_shared<WorkerSession>(id, master, std::make_shared<SessionState>(resources_, isolated));
  sessions_.emplace(id, session);
  changed_.notify_all();
  return session;
}

std::shared_ptr<WorkerSession> WorkerSessions::find(const std::string& id, const IncomingCall::Caller& master) {
  MutexLock lock(mutex_);
  if (auto session = known(id, master)) return session;
  throw session_not_found(id, task_);
}

std::shared_ptr<WorkerSession> WorkerSessions::find_soon(const std::string& id, const IncomingCall::Caller& master,
                                                         Seconds timeout) {
  const Seconds until = clock_.now() + timeout;
  MutexLock lock(mutex_);
  while (true) {
    if (auto session = known(id, master)) return session;
    if (ended(id) || clock_.now() >= until) throw session_not_found(id, task_);
    clock_.wait_until(changed_, mutex_, until);  // wait: for the session's Watch, which is on its way; for stop()
  }
}

std::shared_ptr<WorkerSession> WorkerSessions::end(const std::string& id) {
  MutexLock lock(mutex_);
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return nullptr;
  std::shared_ptr<WorkerSession> session = std::move(found->second);
  sessions_.erase(found);
  add_to_last(id, &ended_);
  changed_.notify_all();
  return session;
}

bool WorkerSessions::has_ended(const WorkerSession& session) const {
  MutexLock lock(mutex_);
  return !sessions_.contains(session.id());
}

std::vector<std::shared_ptr<WorkerSession>> WorkerSessions::stop() {
  std::vector<std::shared_ptr<WorkerSession>> sessions;
  MutexLock lock(mutex_);
  is_stopped_ = true;
  for (auto& [id, session] : sessions_) sessions.push_back(std::move(session));
  sessions_.clear();
  changed_.notify_all();
  return sessions;
}

std::vector<std::string> WorkerSessions::ids() const {
  std::vector<std::string> ids;
  MutexLock lock(mutex_);
  for (const auto& [id, session] : sessions_) ids.push_back(id);
  return ids;
}

size_t WorkerSessions::size() const {
  MutexLock lock(mutex_);
  return sessions_.size();
}

bool WorkerSessions::wait_until_none(Seconds until) {
  MutexLock lock(mutex_);
  while (!sessions_.empty() && clock_.now() < until) {
    clock_.wait_until(changed_, mutex_, until);  // wait: for the end of a session, or of all by stop()
  }
  return sessions_.empty();
}

}  // namespace longhaul
