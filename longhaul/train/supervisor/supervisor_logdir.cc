// What a Supervisor does with its logdir: the lock, the journal, the graph, the end of the event file, the mirror.
#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/graph/graph_def.h"
#include "longhaul/graph/graph_files.h"
#include "longhaul/io/directory_lock.h"
#include "longhaul/train/coordination/chief_lock.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/reporting/run_events.h"
#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/supervisor/supervisor.h"
#include "longhaul/train/supervisor/weight_digest_service.h"

namespace longhaul {

void Supervisor::lock_logdir() {
  if (lock_ || !options_.lock_logdir || options_.logdir.empty()) return;
  is_refused_ = true;
  if (had_logdir_) check_directory_is_there(*options_.files, options_.logdir);
  lock_ = std::make_unique<ChiefLock>(options_.logdir,
                                      DirectoryLockOptions{.files = options_.files,
                                                           .clock = options_.clock,
                                                           .limit = options_.lock_lease_secs,
                                                           .use_flock = options_.lock_with_flock},
                                      [coord = coord_](const std::exception_ptr& error) { coord.request_stop(error); });
  is_refused_ = false;
  had_logdir_ = true;
  begin_journal();
}

void Supervisor::begin_journal() {
  if (!options_.keep_journal) return;
  journal_ = std::make_shared<RunJournal>(
      options_.logdir, RunJournalOptions{.skip_crashing_checkpoints = options_.skip_crashing_checkpoints,
                                         .files = options_.files,
                                         .clock = options_.clock});
  journal_->begin();
}

// A step that cannot be read is not known: whoever makes steps will be told why.
std::optional<int64_t> Supervisor::step_now() const {
  try {
    if (graph_defaults_.global_step.valid()) return read_global_step(*session_, graph_defaults_.global_step);
  } catch (const std::exception& error) {
    log_debug("the step is not known: {}", error.what());
  }
  return journal_ ? journal_->history().sums().step : std::nullopt;
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
  if (!journal_) return;
  if (restored_from().empty()) {
    journal_->initialised(std::nullopt);
  } else {
    journal_->restored(restored_from(), split_step(restored_from()).step);
  }
  if (!has_services) journal_->training(std::nullopt);
}

void Supervisor::end_journal(const std::exception_ptr& error, const std::optional<UnsavedSteps>& unsaved) {
  const auto journal = std::exchange(journal_, nullptr);
  if (!journal) return;
  journal->ended(error, save_status().consecutive_failures > 0, unsaved ? unsaved->share : 0);
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

// It gets what the saver saves, whoever asks for that. Begins with the checkpoint that the model was restored from: it
// may have been committed shortly before a kill.
void Supervisor::start_mirror() {
  if (mirror_ || options_.mirror.directory.empty()) return;
  mirror_ = std::make_shared<CheckpointMirror>(options_.logdir, options_.mirror, *options_.files, *options_.clock);
  mirror_->add(restored_from());
  if (saver() == nullptr) return;
  mirroring_ = saver()->on_saved([mirror = mirror_](const std::string& prefix) { mirror->add(prefix); });
}

void Supervisor::close_mirror() {
  mirroring_.reset();
  const auto mirror = std::exchange(mirror_, nullptr);
  if (mirror) mirror->close(preemption_time_left());
}

void Supervisor::close_writer() {
  digests_.reset();
  graph_is_in_events_ = false;
  if (!writer_ || writer_->is_closed()) return;
  if (!is_refused_) write_stop(*writer_, saver() != nullptr ? saver()->last_saved() : "");
  try {
    writer_->close();
  } catch (const Error& error) {
    log_error("the event file in {} is not complete: {}", writer_->logdir(), error.what());
  }
}

}  // namespace longhaul
