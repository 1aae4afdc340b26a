#pragma once

#include <cstdint>
#include <optional>

#include "longhaul/base/clock.h"

namespace longhaul {

// The time of the steps that were made, and are in no checkpoint: what of the account's training is no gain yet. Of
// steps that were lost it is the time that they took first, until they are made again and saved. A save that ends while
// steps are made keeps a part of it, by their number.
class UnsavedTime {
 public:
  UnsavedTime() = default;
  explicit UnsavedTime(Seconds time, std::optional<int64_t> saved_step = std::nullopt)
      : time_(time), saved_step_(saved_step) {}

  void trained(Seconds time) { time_ += time; }
  void lost(Seconds time);  // it is no longer accounted as training
  // A checkpoint of this step is there, of so many that were made. Absent: the step is not known.
  void saved(std::optional<int64_t> step, std::optional<int64_t> highest);
  // The same of one that was restored: it may be older than others, which a restart has skipped.
  void has_saved(std::optional<int64_t> step, std::optional<int64_t> highest);
  void at(int64_t highest);  // the highest step is this, after the time was told

  Seconds time() const { return time_; }
  std::optional<int64_t> saved_step() const { return saved_step_; }  // of the newest checkpoint, if it is known
  bool operator==(const UnsavedTime&) const = default;

 private:
  Seconds time_{0};
  std::optional<int64_t> saved_step_;
};

// What a kill would lose: the time of the model's steps since its newest checkpoint, whether they were made for the
// first time or again. Time in which no step followed that checkpoint is none of it.
class TimeAtStake {
 public:
  TimeAtStake() = default;
  explicit TimeAtStake(Seconds time, std::optional<int64_t> saved_step = std::nullopt)
      : time_(time), saved_step_(saved_step) {}

  void made(Seconds time) { time_ += time; }
  void saved(std::optional<int64_t> step, std::optional<int64_t> now);  // a checkpoint of this step, while at another
  void at(int64_t step);                                                // after the time was told

  Seconds time() const { return time_; }
  // Of the checkpoint that the model comes from, or was saved in since; of a new model the initial step.
  std::optional<int64_t> saved_step() const { return saved_step_; }
  bool operator==(const TimeAtStake&) const = default;

 private:
  Seconds time_{0};
  std::optional<int64_t> saved_step_;
};

}  // namespace longhaul
