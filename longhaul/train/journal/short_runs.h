#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "longhaul/base/clock.h"

namespace longhaul {

inline constexpr Seconds kShortestFirstInterval{5};

// Runs in a row that made steps from the same step on and ended before they had saved a later one: a training that is
// killed faster than checkpoints are due makes no progress for ever. What RunHistory remembers of them; times are its
// events'. Runs that ended before their first step do not count, nor those in which not even the shortest interval had
// passed.
//
// Once there are three they are a pattern, which lasts as long as runs stay about that short, although they may save
// now: their first interval is a shorter one (train/journal/first_interval.h).
class ShortRuns {
 public:
  // Of the run that is under way.
  void began() { run_ = {}; }
  void recovered(double time, std::optional<int64_t> step);  // restored, or initialised (its first save tells the step)
  void trained(double time) { run_.first_step = time; }
  void saved(std::optional<int64_t> step);
  void heard(double time) { run_.last = time; }  // of any of its events
  void ended();

  // Whether the run under way may become another of them.
  bool are_a_pattern() const;
  int64_t count() const { return count_; }  // 0: the last run has saved, as its first interval was a shorter one
  std::optional<int64_t> step() const { return step_; }  // they began with
  Seconds shortest() const { return shortest_; }         // they lasted, from the end of the restore on
  Seconds longest() const { return longest_; }
  Seconds middle() const { return middle_; }  // of their steps, the soonest: half of them had been made

  // One word; "-" for none. What is no such text counts as none.
  std::string to_text() const;
  static ShortRuns from_text(std::string_view text);

  bool operator==(const ShortRuns&) const = default;

 private:
  struct Run {
    double recovered = 0, last = 0;
    double first_step = 0;        // 0: none was made
    std::optional<int64_t> step;  // it began with; absent: not known
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
