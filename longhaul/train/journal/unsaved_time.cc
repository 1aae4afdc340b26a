#include "longhaul/train/journal/unsaved_time.h"

#include <algorithm>

namespace longhaul {

void UnsavedTime::lost(Seconds time) {
  time_ = std::max(Seconds{0}, time_ - time);
}

void UnsavedTime::saved(std::optional<int64_t> step, std::optional<int64_t> highest) {
  if (!step || !highest || *step >= *highest) {
    time_ = Seconds{0};
    saved_step_ = step;
    return;
  }
  has_saved(step, highest);
}

void UnsavedTime::has_saved(std::optional<int64_t> step, std::optional<int64_t> highest) {
  if (!step || (saved_step_ && *step <= *saved_step_)) return;
  if (saved_step_ && highest && *highest > *saved_step_) {
    const auto made = static_cast<double>(*highest - *saved_step_);
    time_ *= static_cast<double>(std::max<int64_t>(0, *highest - *step)) / made;
  }
  saved_step_ = step;
}

void UnsavedTime::at(int64_t highest) {
  if (saved_step_ && highest <= *saved_step_) time_ = Seconds{0};
}

void TimeAtStake::saved(std::optional<int64_t> step, std::optional<int64_t> now) {
  if (!step || !now || *step >= *now) {
    time_ = Seconds{0};
  } else if (saved_step_ && *step <= *saved_step_) {
    return;
  } else if (saved_step_) {
    time_ *= static_cast<double>(*now - *step) / static_cast<double>(*now - *saved_step_);
  }
  saved_step_ = step;
}

void TimeAtStake::at(int64_t step) {
  if (saved_step_ && step <= *saved_step_) time_ = Seconds{0};
}

}  // namespace longhaul
