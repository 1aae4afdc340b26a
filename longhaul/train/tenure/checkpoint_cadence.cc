#include "longhaul/train/tenure/checkpoint_cadence.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/train/journal/run_journal.h"

namespace longhaul {
namespace {

void warn_of_no_journal(const SaveOption& option) {
  log_warning(
      "{}, but there is no journal of earlier runs, so no interruptions are counted: the interval is chosen as if "
      "there was one a day. The chief keeps a journal where chief.keep_journal and chief.lock are on",
      option.text);
}

}  // namespace

CheckpointCadence::CheckpointCadence(CadenceOptions options)
    : options_(std::move(options)),
      meter_(options_.journal ? options_.journal->history().sums().save_cost : std::nullopt),
      interval_(options_.interval) {}

void CheckpointCadence::session_begins(Seconds now) {
  if (!std::exchange(has_looked_at_runs_, true)) {
    early_interval_ = interval_after_short_runs(options_.journal.get(), options_.option);
    if (options_.chooses_interval && !options_.journal) warn_of_no_journal(options_.option);
  }
  begins_ = true;
  last_failed_ = false;
  early_due_ = now + early_interval_.value_or(Seconds{0});
  due_ = now;
}

void CheckpointCadence::attempted(Seconds now, bool worked) {
  last_failed_ = !worked;
  const bool is_first = std::exchange(begins_, false);
  if (early_interval_) {
    if (worked && !is_first) early_interval_ = next_interval_after_short_runs(*early_interval_, interval_);
    early_due_ = now + early_interval_.value_or(Seconds{0});
  }
  if (worked && options_.chooses_interval) choose_interval();
}

bool CheckpointCadence::is_retry_due(const SaveAttempts& attempts) const {
  return last_failed_ && attempts.time_to_retry() <= Seconds{0};
}

Seconds CheckpointCadence::wait_for_next(Seconds now) {
  if (early_interval_) {
    due_ = now + *early_interval_;
    return *early_interval_;
  }
  const Seconds since_due = now - due_;
  const double missed = std::max(0.0, std::floor(since_due / *interval_) - 1);
  if (missed > 0) {
    log_warning(
        "skipped checkpoints that were due meanwhile: {:.0f}. The last one took {:.0f} s, but one is due every {:.0f} "
        "s",
        missed, since_due.count(), interval_->count());
  }
  const Seconds wait = (1 + missed) * *interval_;
  due_ += wait;
  return wait;
}

void CheckpointCadence::choose_interval() {
  const RunHistory history = options_.journal ? options_.journal->history() : RunHistory{};
  const Seconds chosen = best_save_interval(history, meter_.cost());
  const std::optional<Seconds> before = std::exchange(interval_, chosen);
  if (before && std::abs(chosen / *before - 1) < 0.1) return;
  log_info("The next checkpoint is due in {:.0f} s: one costs {:.3f} s, and {} interruptions are known", chosen.count(),
           meter_.cost().value_or(Seconds{0}).count(), history.sums().interruptions);
}

}  // namespace longhaul
