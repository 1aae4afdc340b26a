#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/clock.h"

namespace longhaul {

// Values that are kept for somebody else under an id, for at most a lease after they were put there or asked for: an
// owner that disappears leaves nothing behind. Values whose lease has ended are dropped by the next call, whatever its
// id. T is cheap to copy. Any thread.
template <typename T>
class Leases {
 public:
  explicit Leases(Clock& clock = Clock::real()) : clock_(clock) {}

  // Replaces what was there under the id.
  void put(const std::string& id, T value, Seconds lease) EXCLUDES(mutex_) {
    const std::vector<Kept> ended = drop_ended();
    std::optional<Kept> before;  // destroyed without the lock
    const MutexLock lock(mutex_);
    if (const auto found = kept_.find(id); found != kept_.end()) before = std::move(found->second);
    kept_.insert_or_assign(id, Kept{std::move(value), clock_.now() + lease});
  }

  // nullopt: there is none, or its lease has ended. Renews the lease.
  std::optional<T> find(const std::string& id, Seconds lease) EXCLUDES(mutex_) {
    const std::vector<Kept> ended = drop_ended();
    const MutexLock lock(mutex_);
    const auto found = kept_.find(id);
    if (found == kept_.end()) return std::nullopt;
    found->second.end = clock_.now() + lease;
    return found->second.value;
  }

  // May be called again.
  void drop(const std::string& id) EXCLUDES(mutex_) {
    std::vector<Kept> ended = drop_ended();
    const MutexLock lock(mutex_);
    const auto found = kept_.find(id);
    if (found == kept_.end()) return;
    ended.push_back(std::move(found->second));
    kept_.erase(found);
  }

 private:
  struct Kept {
    T value;
    Seconds end;
  };

  std::vector<Kept> drop_ended() EXCLUDES(mutex_) {
    std::vector<Kept> ended;
    const MutexLock lock(mutex_);
    const Seconds now = clock_.now();
    std::erase_if(kept_, [&](auto& entry) {
      if (entry.second.end > now) return false;
      ended.push_back(std::move(entry.second));
      return true;
    });
    return ended;
  }

  Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Kept> kept_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
