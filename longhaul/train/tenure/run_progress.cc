#include "longhaul/train/tenure/run_progress.h"

#include <algorithm>
#include <utility>

#include "longhaul/train/journal/run_journal_format.h"

namespace longhaul {
namespace {

constexpr Seconds kFirstPause{0.05};

}  // namespace

RunProgress::RunProgress(std::shared_ptr<RunJournal> journal, std::shared_ptr<FileWriter> writer, Seconds goodput_secs)
    : journal_(std::move(journal)), writer_(std::move(writer)), goodput_secs_(goodput_secs), pause_(kFirstPause) {}

void RunProgress::session_begins(Seconds now, std::optional<int64_t> step, bool counts_steps) {
  counts_steps_ = counts_steps;
  first_step_ = step;
  is_training_ = false;
  pause_ = kFirstPause;
  next_mark_ = now + kJournalMarkSecs;
  if (!next_goodput_) next_goodput_ = now + goodput_secs_;
}

Seconds RunProgress::next_look() {
  if (is_training_) return kJournalMarkSecs;
  return std::exchange(pause_, std::min(2 * pause_, kJournalMarkSecs));
}

void RunProgress::look(Seconds now, std::optional<int64_t> step) {
  if (!journal_) return;
  if (!is_training_ && (!counts_steps_ || step > first_step_)) {
    is_training_ = true;
    journal_->training(step);
    next_mark_ = now + kJournalMarkSecs;
  } else if (is_training_ || now >= next_mark_) {
    journal_->mark(step);
    next_mark_ = now + kJournalMarkSecs;
  }
  if (step) write_goodput(now, *step);
}

void RunProgress::interrupted(std::optional<int64_t> step) {
  if (journal_) journal_->interrupted(step);
}

void RunProgress::interrupted_after(int64_t step, Seconds ago) {
  if (!journal_) return;
  if (step > journal_->history().sums().step) journal_->mark(step, ago);
  journal_->interrupted(std::nullopt);
}

void RunProgress::stop_requested(std::optional<int64_t> step) {
  last_step_ = step;
  if (journal_) journal_->stop_requested(kStopText, step);
}

void RunProgress::look_after_stop(std::optional<int64_t> step) {
  if (!journal_ || step <= last_step_) return;
  last_step_ = step;
  journal_->mark(step);
}

void RunProgress::write_goodput(Seconds now, int64_t step) {
  if (!writer_ || goodput_secs_ <= Seconds{0} || !next_goodput_ || now < *next_goodput_) return;
  next_goodput_ = now + goodput_secs_;
  writer_->add_scalar(kGoodputTag, static_cast<float>(journal_->history().breakdown().goodput()), step);
}

}  // namespace longhaul
