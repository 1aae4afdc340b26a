#include "longhaul/train/hooks/journal_hook.h"

#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/journal/run_journal.h"

namespace longhaul {
namespace {

constexpr Seconds kGoodputSecs{120};

}  // namespace

void JournalHook::begin(Graph& graph) {
  step_.find(graph, "JournalHook");
  if (!options_.output_dir.empty()) {
    writer_ = hook_writer(nullptr, options_.output_dir, options_.files, &options_.coordinator.clock());
  }
  next_goodput_ = now() + kGoodputSecs;
  is_stopping_ = false;
}

void JournalHook::after_create_session(Session& session, const Coordinator&) {
  first_step_ = step_.now(session);
  is_training_ = false;
}

void JournalHook::after_run(SessionRunContext& context, const SessionRunValues&) {
  if (!is_training_) {
    look_for_first_step(context.session());
  } else if (now() >= next_mark_) {
    mark(step_.now(context.session()));
  }
  const bool is_to_stop = context.stop_requested() || options_.coordinator.should_stop();
  if (!is_to_stop || std::exchange(is_stopping_, true)) return;
  journal().stop_requested("a stop was requested", step_.now(context.session()));
}

void JournalHook::look_for_first_step(Session& session) {
  const int64_t step = step_.now(session);
  if (step <= first_step_) return;
  is_training_ = true;
  journal().training(step);
  next_mark_ = now() + kJournalMarkSecs;
}

void JournalHook::mark(int64_t step) {
  journal().mark(step);
  next_mark_ = now() + kJournalMarkSecs;
  if (writer_ == nullptr || now() < next_goodput_) return;
  next_goodput_ = now() + kGoodputSecs;
  writer_->add_scalar(kGoodputTag, static_cast<float>(journal().history().breakdown().goodput()), step);
}

}  // namespace longhaul
