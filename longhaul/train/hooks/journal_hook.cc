#include "longhaul/train/hooks/journal_hook.h"

#include "longhaul/base/log.h"
#include "longhaul/session/step_reading.h"
#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/journal/run_journal.h"

namespace longhaul {
namespace {

constexpr Seconds kGoodputSecs{120};

}  // namespace

void JournalHook::begin(Graph& graph) {
  step_.find(graph, "JournalHook");
  const auto writer = hook_writer(nullptr, options_.output_dir, options_.files, &options_.coordinator.clock());
  is_stopping_ = false;
  progress_ = std::make_unique<RunProgress>(options_.tenure->journal(), writer, kGoodputSecs);
}

void JournalHook::after_create_session(Session& session, const Coordinator&) {
  progress_->session_begins(now(), step_.now(session));
}

// On servers the tasks that knew the step are gone.
void JournalHook::interrupted(Session& session) {
  if (progress_ == nullptr) return;
  std::optional<int64_t> step;
  const StepReading* const reading = session.capabilities().step_reading;
  const std::optional<ReadStep> newest = reading != nullptr ? reading->newest_step() : std::nullopt;
  if (newest) return progress_->interrupted_after(newest->step, newest->ago);
  try {
    if (reading == nullptr) step = step_.now(session);
  } catch (const std::exception& error) {
    log_debug("the step of the lost session is unknown: {}", error.what());
  }
  progress_->interrupted(step);
}

void JournalHook::after_run(SessionRunContext& context, const SessionRunValues&) {
  if (progress_->is_look_due(now())) progress_->look(now(), step_.now(context.session()));
  if (is_stopping_) return;
  is_stopping_ = context.stop_requested() || options_.coordinator.should_stop();
  if (is_stopping_) progress_->stop_requested(step_.now(context.session()));
}

}  // namespace longhaul
