#include "longhaul/train/supervisor/journal_service.h"

#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/session/step_reading.h"
#include "longhaul/session/step_watch.h"

namespace longhaul {
namespace {

bool saves_checkpoints(const ServiceContext& context) {
  return context.saver != nullptr && context.save_model_secs > Seconds{0};
}

}  // namespace

JournalService::JournalService(std::shared_ptr<const ServiceContext> context)
    // wait: the journal has a mark after each interval
    : LooperThread(context->coord, kJournalMarkSecs, {}, "lh-journal"),
      context_(std::move(context)),
      progress_(context_->journal, context_->writer, context_->save_summaries_secs),
      missing_(saves_checkpoints(*context_) ? context_->global_step : Output()) {
  if (!context_->journal || !context_->session) {
    throw InvalidArgumentError("JournalService: its ServiceContext needs a session and a journal");
  }
}

void JournalService::start_loop() {
  const std::optional<int64_t> step = read_step();
  const Seconds now = coord().clock().now();
  progress_.session_begins(now, step, context_->global_step.valid());
  missing_.session_begins(now, step);
}

// A step that ends between the two looks is counted by the second one.
void JournalService::run_loop() {
  const bool is_under_way = is_step_under_way();
  const std::optional<int64_t> step = read_step();
  const Seconds now = coord().clock().now();
  progress_.look(now, step);
  missing_.look(now, {step, is_under_way});
}

// A stop for an error is no stop that was asked for: the end of the run tells which. After another one the program may
// make steps until it joins the threads.
void JournalService::stop_loop() {
  if (coord().reported_error() != nullptr) return note_interruption();
  progress_.stop_requested(read_step());
  // wait: the next mark, if there are steps
  while (!coord().wait_for_join(kJournalMarkSecs)) progress_.look_after_stop(read_step());
  const bool is_under_way = is_step_under_way();
  const std::optional<int64_t> last = read_step();
  progress_.look_after_stop(last);
  missing_.ends(coord().clock().now(), {last, is_under_way});
}

// On servers the session is lost, or the task that has the step may not answer. A directory that another chief has is
// an error that is known already.
void JournalService::note_interruption() {
  const StepReading* const reading = context_->session->capabilities().step_reading;
  try {
    if (reading == nullptr) return progress_.interrupted(read_step());
    const std::optional<ReadStep> newest = reading->newest_step();
    newest ? progress_.interrupted_after(newest->step, newest->ago) : progress_.interrupted(std::nullopt);
  } catch (const std::exception& error) {
    log_debug("the journal does not know where the session has ended: {}", error.what());
  }
}

bool JournalService::is_step_under_way() const {
  const StepWatching* const steps = context_->session->capabilities().step_watching;
  return steps != nullptr && steps->is_step_under_way();
}

// nullopt: there is none, or the session fails, which is the business of who makes steps.
std::optional<int64_t> JournalService::read_step() const {
  if (!context_->global_step.valid()) return std::nullopt;
  try {
    return read_global_step(*context_->session, context_->global_step);
  } catch (const Error& error) {
    log_debug("the step is unknown to the journal: {}", error.what());
    return std::nullopt;
  }
}

}  // namespace longhaul
