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
inline constexpr Seconds kMostCostOfFewSaves{36};  // what an hour between saves is for, by choose_save_interval()

// What a save cost: RunEvent (run_history.h) says what the three are.
struct SaveCosts {
  Seconds stalled{0}, lasted{0}, cost{0};
};

// How often checkpoints are taken: so many seconds apart, or as it loses the least time (kAuto), which
// choose_save_interval() tells.
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

// How long such a training runs between two interruptions, judged by how long it ran so far and how often it was
// interrupted. For a young one that says little: it counts as if it had run for a day more, with one interruption.
Seconds mean_time_between_failures(Seconds running, int64_t interruptions);

// The interval between two checkpoints that loses the least time, if each costs `cost` and the training is interrupted
// every `between_failures`: sqrt(2 * cost * between_failures), the first-order optimum of J. W. Young, "A First Order
// Approximation to the Optimum Checkpoint Interval", CACM 17(9), 1974; J. T. Daly, "A Higher Order Estimate of the
// Optimum Checkpoint Interval for Restart Dumps", FGCS 22(3), 2006, agrees where the cost is small against both. From
// 30 s to 1 h; yet checkpoints never cost more than 1 % of the time, even if they are further apart for that.
Seconds choose_save_interval(Seconds cost, Seconds between_failures);

// Learns what saves cost the training: what they held it up, and the steps that were not made while they were written,
// as far as the rate of the steps between two saves tells. For one thread.
//
//   meter.begins(now, step); save(); meter.ends(now, step, stalled); ... meter.cost()
class SaveCostMeter {
 public:
  // `known`: what earlier runs have learnt.
  explicit SaveCostMeter(std::optional<Seconds> known = std::nullopt) : known_(known) {}

  // Without a step only the stalls are counted.
  void begins(Seconds now, std::optional<int64_t> step);
  void ends(Seconds now, std::optional<int64_t> step, Seconds stalled);

  Seconds last() const { return last_.back(); }  // of the last save
  // The median of the last five; nullopt: nothing is known. What was known counts as one where there are fewer. One or
  // two may have met a disk that stalled: until there are three, it is kMostCostOfFewSaves at most.
  std::optional<Seconds> cost() const;

 private:
  struct Moment {
    Seconds time;
    std::optional<int64_t> step;
  };
  Seconds lost(const Moment& end) const;

  const std::optional<Seconds> known_;
  Moment begin_{};                       // of the save
  std::optional<Moment> end_;            // of the save before
  std::optional<double> steps_per_sec_;  // between the two
  std::deque<Seconds> last_;
};

}  // namespace longhaul
