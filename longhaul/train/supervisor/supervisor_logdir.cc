// What a Supervisor does with its logdir: the lock, the journal, the graph, the end of the event file, the mirror.
#include "longhaul/base/log.h"
#include "longhaul/graph/graph_def.h"
#include "longhaul/graph/graph_files.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/reporting/run_events.h"
#include "longhaul/train/supervisor/supervisor.h"
#include "longhaul/train/supervisor/weight_digest_service.h"
#include "longhaul/train/tenure/chief_tenure.h"

namespace longhaul {

void Supervisor::begin_tenure() {
  tenure_->begin([coord = coord_](const std::exception_ptr& error) { coord.request_stop(error); });
}

// A step that cannot be read is not known: whoever makes steps will be told why.
std::optional<int64_t> Supervisor::step_now() const {
  try {
    if (graph_defaults_.global_step.valid()) return read_global_step(*session_, graph_defaults_.global_step);
  } catch (const std::exception& error) {
    log_debug("the step is not known: {}", error.what());
  }
  return tenure_->journal() ? tenure_->journal()->history().sums().step : std::nullopt;
}

void Supervisor::note_session(const std::shared_ptr<Session>& session) {
  has_session_ = true;
  if (!is_chief() || !can_save()) return;
  session_ = session;
  start_step_ = step_now();
}

std::optional<UnsavedSteps> Supervisor::warn_of_unsaved_steps(const std::string& who) const {
  if (!session_) return std::nullopt;
  const std::optional<UnsavedSteps> unsaved = unsaved_steps(*saver(), save_path_, start_step_, step_now());
  if (!unsaved) return std::nullopt;
  log_warning(
      "{} saves no checkpoint: {} in none. Call saver()->save() before stop(), or stop({{.save_checkpoint = true}}), "
      "or use managed_session()",
      who, describe(*unsaved));
  return unsaved;
}

// Without services nobody looks for the first step.
void Supervisor::note_start(bool has_services) {
  tenure_->recovered(restored_from());
  if (!has_services && tenure_->journal()) tenure_->journal()->training(std::nullopt);
}

void Supervisor::write_graph() {
  if (!options_.logdir.empty()) {
    longhaul::write_graph(to_graph_def(graph_, /*add_shapes=*/true), options_.logdir, "graph.pbtxt",
                          {.files = options_.files});
  }
  if (!writer_ || graph_is_in_events_) return;
  writer_->add_graph(graph_bytes_);
  writer_->add_meta_graph(meta_graph_bytes_);
  graph_is_in_events_ = true;
}

void Supervisor::close_writer() {
  digests_.reset();
  graph_is_in_events_ = false;
  if (!writer_ || writer_->is_closed()) return;
  if (!tenure_->is_refused()) write_stop(*writer_, saver() != nullptr ? saver()->last_saved() : "");
  try {
    writer_->close();
  } catch (const Error& error) {
    log_error("the event file in {} is not complete: {}", writer_->logdir(), error.what());
  }
}

}  // namespace longhaul
