#include "longhaul/train/status/step_looks.h"

namespace longhaul {
namespace {

constexpr Seconds kWindow{60}, kBetweenKept{1};

}  // namespace

void StepLooks::look(Seconds now, double wall_time, int64_t step) {
  const int64_t before = step_.value_or(step);
  if (step > before) {
    steps_made_ += step - before;
    last_growth_ = wall_time;
  } else if (step < before) {
    looks_.clear();
  }
  step_ = step;
  // The newest look is replaced until it is far enough from the one before.
  if (looks_.size() >= 2 && looks_.back().time - looks_[looks_.size() - 2].time < kBetweenKept) looks_.pop_back();
  looks_.push_back({now, step});
  while (looks_.size() > 2 && looks_.front().time < now - kWindow) looks_.pop_front();
}

double StepLooks::steps_per_second() const {
  if (looks_.size() < 2) return 0;
  const Seconds time = looks_.back().time - looks_.front().time;
  return time > Seconds{0} ? static_cast<double>(looks_.back().step - looks_.front().step) / time.count() : 0;
}

}  // namespace longhaul
