#include "longhaul/train/journal/save_interval.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace longhaul {
namespace {

constexpr Seconds kPriorTime{24 * 3600.0};
constexpr int64_t kPriorInterruptions = 1;
constexpr double kMostOverhead = 0.01;
constexpr size_t kSavesRemembered = 5, kFewestSaves = 3;

}  // namespace

Seconds mean_time_between_failures(Seconds running, int64_t interruptions) {
  return (running + kPriorTime) / static_cast<double>(interruptions + kPriorInterruptions);
}

Seconds choose_save_interval(Seconds cost, Seconds between_failures) {
  const Seconds least_lost{std::sqrt(2 * cost.count() * between_failures.count())};
  return std::max(std::clamp(least_lost, kShortestAutoInterval, kLongestAutoInterval), cost / kMostOverhead);
}

void SaveCostMeter::begins(Seconds now, std::optional<int64_t> step) {
  begin_ = {now, step};
  steps_per_sec_.reset();
  if (!end_ || !end_->step || !step || now <= end_->time) return;
  steps_per_sec_ = static_cast<double>(*step - *end_->step) / (now - end_->time).count();
}

void SaveCostMeter::ends(Seconds now, std::optional<int64_t> step, Seconds stalled) {
  const Moment end{now, step};
  last_.push_back(std::max(stalled, lost(end)));
  if (last_.size() > kSavesRemembered) last_.pop_front();
  end_ = end;
}

// The time in which the steps that were not made would have been made.
Seconds SaveCostMeter::lost(const Moment& end) const {
  if (!steps_per_sec_ || *steps_per_sec_ <= 0 || !begin_.step || !end.step) return Seconds{0};
  const Seconds lasted = end.time - begin_.time;
  const Seconds used{static_cast<double>(*end.step - *begin_.step) / *steps_per_sec_};
  return std::max(Seconds{0}, lasted - used);
}

std::optional<Seconds> SaveCostMeter::cost() const {
  std::vector<Seconds> sorted(last_.begin(), last_.end());
  if (known_ && sorted.size() < kSavesRemembered) sorted.push_back(*known_);
  if (sorted.empty()) return std::nullopt;
  std::sort(sorted.begin(), sorted.end());
  const Seconds median = sorted[(sorted.size() - 1) / 2];
  return sorted.size() < kFewestSaves ? std::min(median, kMostCostOfFewSaves) : median;
}

}  // namespace longhaul
