#pragma once

#include <map>
#include <memory>
#include <vector>

#include "longhaul/base/mutex.h"

namespace longhaul {

// The calls under way, so that all can be ended. It does not keep them. Any thread may call.
template <typename Call>
class OpenCalls {
 public:
  void add(const std::shared_ptr<Call>& call) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    calls_.emplace(call.get(), call);
  }
  void remove(const Call* call) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    calls_.erase(call);
  }
  std::vector<std::shared_ptr<Call>> all() const EXCLUDES(mutex_) {
    std::vector<std::shared_ptr<Call>> calls;
    MutexLock lock(mutex_);
    for (const auto& [key, call] : calls_) {
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
  std::map<const Call*, std::weak_ptr<Call>> calls_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
