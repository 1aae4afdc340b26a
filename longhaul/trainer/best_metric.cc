#include "longhaul/trainer/best_metric.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "longhaul/base/log.h"

namespace longhaul {

bool BestMetric::is_gain(double metric, const LoopPosition::Values& best) const {
  if (std::isnan(metric)) return false;
  if (best.best_step < 0) return true;
  const double gain = options_.best.mode == MetricMode::kMin ? best.best_metric - metric : metric - best.best_metric;
  return gain > options_.early_stopping.min_delta;
}

void BestMetric::look_at_direction(double metric, bool gained, bool is_first) {
  constexpr int kWorse = 5;
  const bool rises = options_.best.mode == MetricMode::kMin;
  const bool is_worse = !gained && (rises ? metric > last_ : metric < last_);
  saw_first_ |= is_first;
  gains_ += gained ? 1 : 0;
  worse_ = is_worse ? worse_ + 1 : 0;
  last_ = metric;
  if (worse_ < kWorse || gains_ > 1 || !saw_first_ || std::exchange(has_warned_, true)) return;
  log_warning(
      "the metric of the validations only {}: {:.6g} is the {}th in a row that is worse than the one before, since {} "
      "is better. If {} is better, set TrainerOptions::best.mode to MetricMode::{}: the best checkpoints would be the "
      "worst, and early stopping would end a training that gains",
      rises ? "rises" : "falls", metric, kWorse, rises ? "lower" : "higher",
      rises ? "higher, as of an accuracy," : "lower, as of a loss,", rises ? "kMax" : "kMin");
}

void BestMetric::take(double metric, int64_t step) {
  LoopPosition::Values now = position_.get();
  const bool gained = is_gain(metric, now);
  look_at_direction(metric, gained, now.best_step < 0);
  const int64_t without_gain = gained ? 0 : now.without_gain + 1;
  position_.change([&](LoopPosition::Values& values) {
    values.without_gain = without_gain;
    if (!gained) return;
    values.best_metric = metric;
    values.best_step = step;
  });
  if (options_.early_stopping.patience == 0 || without_gain < options_.early_stopping.patience) return;
  now = position_.get();
  const std::string best = now.best_step < 0
                               ? "none was a number"
                               : fmt::format("the best, {:.6g}, was at step {}", now.best_metric, now.best_step);
  position_.change([&](LoopPosition::Values& values) {
    values.finished = true;
    values.reason = fmt::format("no gain in {} validations; {} ({} is better: TrainerOptions::best.mode)", without_gain,
                                best, options_.best.mode == MetricMode::kMin ? "lower" : "higher");
  });
  log_info("stopping early at step {}: {}", step, position_.get().reason);
}

}  // namespace longhaul
