#include "longhaul/io/direct/read_plan.h"

#include <algorithm>
#include <numeric>

namespace longhaul {
namespace {

constexpr size_t kSmallestStraight = 64 * 1024;
constexpr size_t kLargestGap = 64 * 1024;  // that is read with a window rather than ending it

class Planner {
 public:
  Planner(std::span<const ReadRequest> requests, const ReadPlanOptions& options)
      : requests_(requests), options_(options) {}

  std::vector<PlannedRead> plan() && {
    for (const size_t request : in_order()) {
      if (goes_straight(requests_[request])) {
        add_blocks(request);
      } else {
        add_to_windows(request);
      }
    }
    return std::move(reads_);
  }

 private:
  std::vector<size_t> in_order() const {
    std::vector<size_t> order(requests_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [this](size_t i) { return requests_[i].offset; });
    return order;
  }

  uint64_t aligned_down(uint64_t bytes) const { return bytes - bytes % options_.alignment; }
  size_t aligned_up(size_t bytes) const { return aligned_down(bytes + options_.alignment - 1); }

  bool goes_straight(const ReadRequest& request) const {
    return request.out != nullptr && request.count >= kSmallestStraight && request.offset % options_.alignment == 0 &&
           reinterpret_cast<uintptr_t>(request.out) % options_.alignment == 0;
  }

  void add_blocks(size_t request) {
    for (size_t begin = 0; begin < requests_[request].count; begin += options_.block_bytes) {
      const size_t size = std::min(requests_[request].count - begin, options_.block_bytes);
      reads_.push_back({.offset = requests_[request].offset + begin,
                        .size = aligned_up(size),
                        .straight = aligned_down(size),
                        .parts = {{request, begin, size, 0}}});
    }
  }

  void add_to_windows(size_t request) {
    for (size_t begin = 0; begin < requests_[request].count;) {
      const uint64_t position = requests_[request].offset + begin;
      PlannedRead& window = window_for(position);
      const size_t at = position - window.offset;
      const size_t size = std::min(requests_[request].count - begin, options_.window_bytes - at);
      window.parts.push_back({request, begin, size, at});
      window.size = std::max(window.size, aligned_up(at + size));
      begin += size;
    }
  }

  // Positions come in rising order, except that requests may overlap: one may begin in a window before the last.
  PlannedRead& window_for(uint64_t position) {
    if (has_window_) {
      PlannedRead& window = reads_[window_];
      const uint64_t end = window.offset + std::min<uint64_t>(window.size + kLargestGap, options_.window_bytes);
      if (position >= window.offset && position < end) return window;
    }
    has_window_ = true;
    window_ = reads_.size();
    return reads_.emplace_back(PlannedRead{.offset = aligned_down(position)});
  }

  const std::span<const ReadRequest> requests_;
  const ReadPlanOptions options_;
  std::vector<PlannedRead> reads_;
  bool has_window_ = false;
  size_t window_ = 0;  // which of the reads is being added to
};

}  // namespace

std::vector<PlannedRead> plan_reads(std::span<const ReadRequest> requests, const ReadPlanOptions& options) {
  return Planner(requests, options).plan();
}

}  // namespace longhaul
