#pragma once

#include <concepts>
#include <cstdint>
#include <deque>
#include <optional>

#include "longhaul/base/clock.h"

namespace longhaul {

struct AutoInterval {
  bool operator==(const AutoInterval&) const = default;
};
inline constexpr AutoInterval kAuto{};
inline constexpr Seconds kShortestAutoInterval{30}, kLongestAutoInterval{3600};
inline constexpr Seconds kMostCostOfFewSaves{36};  // at this cost, choose_save_interval() returns an hour

// The cost of a save; RunEvent (run_history.h) explains the members.
struct SaveCosts {
  Seconds stalled{0}, lasted{0}, cost{0};
};

// The interval between checkpoints: a number of seconds, or the interval that loses the least time (kAuto), which
// choose_save_interval() computes.
class SaveInterval {
 public:
  SaveInterval(AutoInterval) {}
  template <typename Duration>
    requires std::convertible_to<Duration, Seconds>
  SaveInterval(Duration seconds) : seconds_(seconds) {}

  bool is_auto() const { return !seconds_; }
  bool is_off() const { return seconds_ == Seconds{0}; }
  Seconds seconds() const { return seconds_.value(); }  // std::bad_optional_access: it is kAuto
  bool operator==(const SaveInterval&) const = default;

 private:
  std::optional<Seconds> seconds_;
};

// Estimates the time between two interruptions from the time run so far and the number of interruptions. Because a
// young training run has little data, a day with one interruption is added to both.
Seconds mean_time_between_failures(Seconds running, int64_t interruptions);

// The interval between two checkpoints that loses the least time, if each costs `cost` and training is interrupted
// every `between_failures`: sqrt(2 * cost * between_failures), the first-order optimum of J. W. Young, "A First Order
// Approximation to the Optimum Checkpoint Interval", CACM 17(9), 1974; J. T. Daly, "A Higher Order Estimate of the
// Optimum Checkpoint Interval for Restart Dumps", FGCS 22(3), 2006, agrees if the cost is small compared with both. The
// result is between 30 s and 1 h, but longer if checkpoints would otherwise cost more than 1 % of the time.
Seconds choose_save_interval(Seconds cost, Seconds between_failures);

// Measures the cost of saves to the training run: their stalls, and the steps that were not made while they were
// written, estimated from the step rate between saves. One thread at a time may call.
//
//   meter.begins(now, step); save(); meter.ends(now, step, stalled); ... meter.cost()
class SaveCostMeter {
 public:
  // `known`: the cost measured by earlier runs.
  explicit SaveCostMeter(std::optional<Seconds> known = std::nullopt) : known_(known) {}

  // Without a step, only stalls are counted.
  void begins(Seconds now, std::optional<int64_t> step);
  void ends(Seconds now, std::optional<int64_t> step, Seconds stalled);

  Seconds last() const { return last_.back(); }  // of the last save
  // The median cost of the last five saves; nullopt: not known. If there are fewer, `known` counts as one of them.
  // Until there are three, the result is at most kMostCostOfFewSaves, because one or two saves may have met a stalling
  // disk.
  std::optional<Seconds> cost() const;

 private:
  struct Moment {
    Seconds time;
    std::optional<int64_t> step;
  };
  Seconds lost(const Moment& end) const;

  const std::optional<Seconds> known_;
  Moment begin_{};                       // of the save
  std::optional<Moment> end_;            // of the previous save
  std::optional<double> steps_per_sec_;  // between the two
  std::deque<Seconds> last_;
};

}  // namespace longhaul
