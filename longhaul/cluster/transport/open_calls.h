#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "longhaul/base/mutex.h"

namespace longhaul {

// The calls under way, so that all can be ended. It does not keep them. Any thread may call.
template <typename Call>
class OpenCalls {
 public:
  // A number by which it is removed.
  uint64_t add(const std::shared_ptr<Call>& call) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    calls_.emplace(++last_, call);
    return last_;
  }
  void remove(uint64_t number) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    calls_.erase(number);
  }
  // In the order of their beginning.
  std::vector<std::shared_ptr<Call>> all() const EXCLUDES(mutex_) {
    std::vector<std::shared_ptr<Call>> calls;
    MutexLock lock(mutex_);
    for (const auto& [number, call] : calls_) {
      if (auto kept = call.lock()) calls.push_back(std::move(kept));
    }
    return calls;
  }
  size_t size() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return calls_.size();
  }

 private:
  mutable Mutex mutex_;
  std::map<uint64_t, std::weak_ptr<Call>> calls_ GUARDED_BY(mutex_);
  uint64_t last_ GUARDED_BY(mutex_) = 0;
};

}  // namespace longhaul
