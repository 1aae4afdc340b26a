#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace longhaul {

// When a loss is bad: NaN and infinity always, and what rises too far above the median of the losses before it. A rise
// is too far if it exceeds all three of `deviations`, `least_share` and `least_rise`, so that neither a constant loss
// nor one near zero makes every little rise a bad one.
struct LossWatchOptions {
  int window = 100;        // of so many finite losses, the newest, the median is taken
  int warm_up = 50;        // as long as there were fewer, only NaN and infinity are bad
  double deviations = 20;  // so many times the median absolute deviation of these losses; 0: no rise is too far
  double least_share = 1;  // so many times the median itself: 1 is twice the median
  double least_rise = 0.1;
  int in_a_row = 3;  // so many losses in a row must be too high; a single one that stands out is none
};

// InvalidArgumentError: a number is negative or NaN, warm_up is greater than window.
void check_loss_watch(const LossWatchOptions& options);

// Watches the losses of a training run, one by one. The verdict on a loss is a function of the losses so far alone, to
// the bit, so that the same run gives the same one. One thread at a time.
class LossWatch {
 public:
  explicit LossWatch(const LossWatchOptions& options = {});  // throws what check_loss_watch() throws

  enum class Verdict {
    kGood,
    kHigh,  // too high, but not for in_a_row steps yet
    kBad,
  };
  Verdict look(int64_t step, double loss);
  // The first of the steps in a row whose loss was too high or not finite; -1: the last one was good.
  int64_t first_bad_step() const { return high_ > 0 ? first_high_step_ : -1; }
  double median() const;  // of the window; NaN: it is empty

  // Everything that later verdicts depend on besides the options. set_state() begins anew with what is no state.
  std::vector<double> state() const;
  void set_state(const std::vector<double>& state);

 private:
  bool is_too_high(double loss) const;

  const LossWatchOptions options_;
  std::deque<double> losses_;  // the window, oldest first
  int high_ = 0;               // in a row
  int64_t first_high_step_ = -1;
};

}  // namespace longhaul
