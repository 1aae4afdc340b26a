#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_set>

namespace longhaul {

// The last steps that are over, so that what arrives late for them is dropped.
class StepRing {
 public:
  explicit StepRing(size_t most) : most_(most) {}

  bool contains(int64_t step) const { return steps_.contains(step); }
  void add(int64_t step) {
    if (!steps_.insert(step).second) return;
    order_.push_back(step);
    if (order_.size() <= most_) return;
    steps_.erase(order_.front());
    order_.pop_front();
  }
  size_t size() const { return order_.size(); }

 private:
  const size_t most_;
  std::deque<int64_t> order_;
  std::unordered_set<int64_t> steps_;
};

}  // namespace longhaul
