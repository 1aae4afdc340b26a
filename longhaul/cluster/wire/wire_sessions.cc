#include "longhaul/cluster/wire/wire_sessions.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/cluster/transport/task_errors.h"

namespace longhaul {

WireSessions::Use::Use(WireSessions& sessions, const std::string& handle)
    : sessions_(sessions), handle_(handle), session_(sessions.begin_use(handle)) {}

WireSessions::Use::~Use() {
  if (session_ != nullptr) sessions_.end_use(handle_);
}

void WireSessions::check_room() {
  MutexLock lock(mutex_);
  check_room_locked();
}

void WireSessions::check_room_locked() {
  if (is_stopped_) throw UnavailableError(why_);
  if (entries_.size() < options_.most) return;
  throw ResourceExhaustedError(fmt::format(
      "the master has {} sessions of clients, which is the most that it takes: close those that are no longer used, or "
      "let it end idle ones (MasterServiceOptions::session_gc)",
      entries_.size()));
}

std::string WireSessions::add(std::shared_ptr<WireSession> session) {
  const std::string handle = fmt::format("{:016x}", new_incarnation());
  MutexLock lock(mutex_);
  check_room_locked();
  entries_[handle] = {.session = std::move(session), .last_used = clock_.now()};
  return handle;
}

std::shared_ptr<WireSession> WireSessions::begin_use(const std::string& handle) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(handle);
  if (found == entries_.end()) return nullptr;
  ++found->second.uses;
  return found->second.session;
}

void WireSessions::end_use(const std::string& handle) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(handle);
  if (found == entries_.end()) return;
  --found->second.uses;
  found->second.last_used = clock_.now();
}

std::shared_ptr<WireSession> WireSessions::take(const std::string& handle) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(handle);
  if (found == entries_.end()) return nullptr;
  std::shared_ptr<WireSession> session = std::move(found->second.session);
  entries_.erase(found);
  return session;
}

std::vector<WireSessions::Held> WireSessions::take_all() {
  std::vector<Held> taken;
  MutexLock lock(mutex_);
  for (auto& [handle, entry] : entries_) taken.push_back({handle, std::move(entry.session), Seconds{0}});
  entries_.clear();
  return taken;
}

std::vector<WireSessions::Held> WireSessions::take_idle() {
  constexpr Seconds kBetweenLooks{10};
  std::vector<Held> taken;
  {
    MutexLock lock(mutex_);
    const Seconds now = clock_.now();
    if (options_.gc.count() <= 0 || now < next_look_) return taken;
    next_look_ = now + std::min(kBetweenLooks, options_.gc);
    taken = take_idle_locked(now);
  }
  for (const Held& held : taken) log_info("GC session {} after {:.0f} seconds", held.handle, held.idle.count());
  return taken;
}

std::vector<WireSessions::Held> WireSessions::take_idle_locked(Seconds now) {
  std::vector<Held> taken;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const Seconds idle = now - entry->second.last_used;
    if (entry->second.uses > 0 || idle < options_.gc) {
      ++entry;
    } else {
      taken.push_back({entry->first, std::move(entry->second.session), idle});
      entry = entries_.erase(entry);
    }
  }
  return taken;
}

std::vector<WireSessions::Held> WireSessions::stop(const std::string& why) {
  {
    MutexLock lock(mutex_);
    is_stopped_ = true;
    why_ = why;
  }
  return take_all();
}

size_t WireSessions::size() {
  MutexLock lock(mutex_);
  return entries_.size();
}

}  // namespace longhaul
