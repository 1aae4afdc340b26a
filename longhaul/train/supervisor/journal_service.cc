#include "longhaul/train/supervisor/journal_service.h"

#include <utility>

#include "longhaul/base/log.h"

namespace longhaul {

JournalService::JournalService(std::shared_ptr<const ServiceContext> context)
    // wait: the journal has a mark after each interval
    : LooperThread(context->coord, kJournalMarkSecs, {}, "lh-journal"),
      context_(std::move(context)),
      progress_(context_->journal, context_->writer, context_->save_summaries_secs) {
  if (!context_->journal || !context_->session) {
    throw InvalidArgumentError("JournalService: its ServiceContext needs a session and a journal");
  }
}

void JournalService::start_loop() {
  progress_.session_begins(coord().clock().now(), read_step(), context_->global_step.valid());
}

void JournalService::run_loop() {
  progress_.look(coord().clock().now(), read_step());
}

// A stop for an error is no stop that was asked for: the end of the run tells which. After another one the program may
// make steps until it joins the threads.
void JournalService::stop_loop() {
  try {
    coord().raise_requested_exception();
  } catch (...) {
    return;
  }
  progress_.stop_requested(read_step());
  // wait: the next mark, if there are steps
  while (!coord().wait_for_join(kJournalMarkSecs)) progress_.look_after_stop(read_step());
  progress_.look_after_stop(read_step());
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
