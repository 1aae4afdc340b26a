#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "longhaul/base/clock.h"

namespace longhaul {

inline constexpr Seconds kShortestFirstInterval{5};

// Consecutive runs that began at the same step and ended before they had saved a later one. A job that is killed before
// its checkpoints are due never makes progress. This is RunHistory's record of such runs; the times are those of its
// events. Runs that ended before their first step do not count, nor do runs shorter than the shortest interval.
//
// Three of them make a pattern. It lasts as long as runs stay about that short, even if they now save. The first
// interval of such runs is shorter (train/journal/first_interval.h).
class ShortRuns {
 public:
  // For the run that is under way.
  void began() { run_ = {}; }
  void recovered(double time, std::optional<int64_t> step);  // restored, or initialised (its first save has the step)
  void trained(double time) { run_.first_step = time; }
  void saved(std::optional<int64_t> step);
  void heard(double time) { run_.last = time; }  // on any event of the run
  void ended();

  // Whether the run under way may become another one.
  bool are_a_pattern() const;
  int64_t count() const { return count_; }               // 0: the last run saved, as its first interval was shorter
  std::optional<int64_t> step() const { return step_; }  // at which they began
  Seconds shortest() const { return shortest_; }         // duration, from the end of the restore
  Seconds longest() const { return longest_; }
  Seconds middle() const { return middle_; }  // the earliest time by which a run had made half of its steps

  // One word; "-" for none. Any other text counts as none.
  std::string to_text() const;
  static ShortRuns from_text(std::string_view text);

  bool operator==(const ShortRuns&) const = default;

 private:
  struct Run {
    double recovered = 0, last = 0;
    double first_step = 0;        // 0: no step was made
    std::optional<int64_t> step;  // at which it began; absent: not known
    bool has_saved = false;
    bool operator==(const Run&) const = default;
  };
  void count(Seconds lasted, Seconds middle);

  int64_t count_ = 0;
  std::optional<int64_t> step_;
  Seconds shortest_{0}, longest_{0}, middle_{0};
  bool is_pattern_ = false;
  Run run_;
};

}  // namespace longhaul
