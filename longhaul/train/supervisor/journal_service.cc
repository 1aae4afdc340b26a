#include "longhaul/train/supervisor/journal_service.h"

#include <algorithm>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

constexpr Seconds kFirstPause{0.05};

}  // namespace

JournalService::JournalService(const Coordinator& coord, JournalServiceOptions options)
    : LooperThread(coord, kJournalMarkSecs, {}, "lh-journal"), options_(std::move(options)), pause_(kFirstPause) {}

void JournalService::start_loop() {
  first_step_ = read_step();
  next_goodput_ = coord().clock().now() + options_.goodput_secs;
}

void JournalService::run_loop() {
  const std::optional<int64_t> step = read_step();
  if (!is_training_ && (!options_.global_step.valid() || step > first_step_)) {
    is_training_ = true;
    options_.journal->training(step);
  } else if (is_training_ || pause_ >= kJournalMarkSecs) {
    options_.journal->mark(step);
  }
  if (step) write_goodput(*step);
}

Seconds JournalService::next_interval() {
  if (is_training_) return kJournalMarkSecs;
  return std::exchange(pause_, std::min(2 * pause_, kJournalMarkSecs));
}

// A stop for an error is no stop that was asked for: the end of the run tells which.
void JournalService::stop_loop() {
  try {
    coord().raise_requested_exception();
  } catch (...) {
    return;
  }
  options_.journal->stop_requested("a stop was requested", read_step());
}

// nullopt: there is none, or the session fails, which is the business of who makes steps.
std::optional<int64_t> JournalService::read_step() const {
  if (!options_.global_step.valid()) return std::nullopt;
  try {
    return options_.session->run(options_.global_step).item<int64_t>();
  } catch (const Error& error) {
    log_debug("the journal does not know the step: {}", error.what());
    return std::nullopt;
  }
}

void JournalService::write_goodput(int64_t step) {
  const Seconds now = coord().clock().now();
  if (!options_.writer || options_.goodput_secs <= Seconds{0} || now < next_goodput_) return;
  next_goodput_ = now + options_.goodput_secs;
  const double goodput = options_.journal->history().breakdown().goodput();
  options_.writer->add_scalar(kGoodputTag, static_cast<float>(goodput), step);
}

}  // namespace longhaul
