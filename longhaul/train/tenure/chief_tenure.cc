#include "longhaul/train/tenure/chief_tenure.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/events/file_writer_cache.h"
#include "longhaul/io/files/canonical_directory.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/train/coordination/teardown.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/reporting/run_events.h"
#include "longhaul/train/saving/startup_report.h"
#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/signals/stop_signals.h"
#include "longhaul/train/status/asked_page.h"
#include "longhaul/train/status/status_page.h"

namespace longhaul {
namespace {

ChiefTenureOptions with_absolute_paths(ChiefTenureOptions options) {
  options.directory = absolute_directory(options.directory);
  options.summary_directory = absolute_directory(options.summary_directory);
  options.chief.mirror.directory = absolute_directory(options.chief.mirror.directory);
  return options;
}

// Of hooks, which hold it until after the end.
void flush_shared_events(const std::string& directory, const Deadline* deadline) {
  if (const auto writer = FileWriterCache::find(directory)) flush_or_log(*writer, deadline);
}

std::string short_text(Seconds time) {
  return time < Seconds{10} ? fmt::format("{:.2g} s", time.count()) : fmt::format("{:.0f} s", time.count());
}

// Of a training whose last steps nobody has counted.
void warn_of_lost_time(const Uncounted& lost, int64_t from, const std::string& place) {
  const int64_t after = std::max(lost.after.value_or(0), from);
  const std::string uncounted =
      fmt::format("the steps made after step {} in up to {} of training", after, short_text(lost.time));
  if (after == from) return log_warning("{} are lost, and are made again: continues from {}", uncounted, place);
  log_warning("{} steps, and {}, are lost, and are made again: continues from {}", after - from, uncounted, place);
}

// Of a training whose loss went bad. Whether they are left out or made again is told by who watches the loss.
void warn_of_undone_steps(const RunHistory& history, int64_t from, const std::string& place) {
  const std::vector<Rollback>& all = history.rollbacks().all();
  const bool goes_back = !all.empty() && all.back().restored_step == history.rollbacks().undone_after();
  const std::string since = goes_back ? fmt::format(" of step {}", all.back().diverged_step) : "";
  log_warning("rolled back to step {} after the loss{} went bad: {} steps are undone, up to step {}; continues from {}",
              from, since, std::max<int64_t>(0, history.sums().highest_step.value_or(0) - from),
              history.sums().highest_step.value_or(0), place);
}

void warn_of_lost_steps(const RunHistory& history, const std::string& restored) {
  const std::optional<int64_t> from = restored.empty() ? 0 : split_step(restored).step;
  const std::string place = restored.empty() ? "the beginning" : restored;
  if (history.rollbacks().undone_after() && from) return warn_of_undone_steps(history, *from, place);
  if (history.uncounted().time > Seconds{0}) return warn_of_lost_time(history.uncounted(), from.value_or(0), place);
  const int64_t reached = history.sums().highest_step.value_or(0);
  if (!from || *from >= reached) return;
  log_warning("{} steps are lost, and are made again: training had come to step {}, and continues from {}",
              reached - *from, reached, place);
}

// Null: there is none.
std::unique_ptr<StatusPage> make_page(const ChiefTenureOptions& options) {
  const ChiefOptions& chief = options.chief;
  const AskedPage asked = asked_page(chief.status);
  if (asked.options.address.empty()) return nullptr;
  return std::make_unique<StatusPage>(
      RunStatusOptions{.page = asked.options,
                       .directory = options.directory,
                       .saves = options.saves,
                       .mirror_saves = chief.mirror.directory.empty() ? nullptr : chief.mirror.attempts,
                       .files = options.files,
                       .clock = options.clock},
      asked.names);
}

}  // namespace

MirrorSearchOptions searched_mirror(const ChiefOptions& options) {
  return {options.mirror.directory, options.mirror.start_timeout};
}

ChiefTenure::ChiefTenure(ChiefTenureOptions options)
    : options_(with_absolute_paths(std::move(options))),
      page_(make_page(options_)),
      status_(page_ ? page_->status() : nullptr) {
  check_mirror(options_.chief.mirror, options_.directory);
}

ChiefTenure::~ChiefTenure() {
  Teardown aborted(std::make_exception_ptr(AbortedError("the run was not ended")));
  end(aborted);
}

void ChiefTenure::take() {
  if (!locks() || !is_taken_.exchange(true)) return;
  throw DirectoryLockedError(options_.directory +
                             " already has a chief: a session of this process that was made with the same options. "
                             "Stop that training run first, or give this one another directory.");
}

void ChiefTenure::begin(std::function<void(const std::exception_ptr&)> on_lost) {
  if (std::exchange(is_kept_, false)) raise_if_lost();  // the stop by on_lost may have been for the session before
  note_unhandled_signals();
  if (!lock_ && locks()) begin_locked(std::move(on_lost));
  begin_page();
}

void ChiefTenure::begin_locked(std::function<void(const std::exception_ptr&)> on_lost) {
  is_refused_ = true;
  check_lock(options_.chief.lock, "chief.lock");
  if (had_directory_) check_directory_is_there(*options_.files, options_.directory);
  try {
    lock_directory(std::move(on_lost));
  } catch (const DirectoryLockedError&) {
    throw;
  } catch (const Error&) {
    check_writable(*options_.files, options_.directory, options_.directory_option);  // a better error, if it is that
    throw;
  }
  begin_journal();
}

void ChiefTenure::lock_directory(std::function<void(const std::exception_ptr&)> on_lost) {
  lock_ = std::make_unique<ChiefLock>(options_.directory,
                                      DirectoryLockOptions{.files = options_.files,
                                                           .clock = options_.clock,
                                                           .limit = options_.chief.lock.lease_secs,
                                                           .use_flock = options_.chief.lock.with_flock},
                                      std::move(on_lost), budget().deadline());
  is_refused_ = false;
  had_directory_ = true;
}

void ChiefTenure::begin_journal() {
  if (!options_.chief.keep_journal) return;
  journal_ = std::make_shared<RunJournal>(
      options_.directory, RunJournalOptions{.skip_crashing_checkpoints = options_.chief.skip_crashing_checkpoints,
                                            .files = options_.files,
                                            .clock = options_.clock});
  journal_->begin();
}

void ChiefTenure::begin_page() {
  if (!page_ || page_->is_served()) return;
  status_->begins(journal_);
  page_->begin();
}

void ChiefTenure::note_unhandled_signals() {
  if (options_.directory.empty() || std::exchange(has_noted_signals_, true) || !is_ended_by_sigterm()) return;
  log_info("no StopSignals or Preemption: SIGTERM ends this process without a checkpoint");
}

void ChiefTenure::raise_if_lost() const {
  if (lock_) lock_->raise_if_lost();
}

std::optional<SkipReason> ChiefTenure::skip_reason(const std::string& prefix) {
  const std::optional<std::string> why = journal_ ? journal_->skip_reason(prefix) : std::nullopt;
  if (!why) return std::nullopt;
  return SkipReason(*why, journal_->is_undone(prefix));
}

bool ChiefTenure::is_skipped(const std::string& prefix) const {
  return journal_ && journal_->is_skipped(prefix);
}

bool ChiefTenure::goes_back() const {
  return journal_ && journal_->history().rollbacks().is_under_way();
}

void ChiefTenure::recovered(const std::string& prefix, bool was_there) {
  if (status_) status_->recovered(prefix);
  if (!journal_) return;
  if (was_there) return journal_->found();
  warn_of_lost_steps(journal_->history(), prefix);
  if (prefix.empty()) return journal_->initialised(std::nullopt);
  journal_->restored(prefix, split_step(prefix).step);
}

void ChiefTenure::failed(const std::exception_ptr& error) {
  close_journal(error);
}

void ChiefTenure::mirror_saves_of(Saver& saver) {
  if (status_) status_->follow_saves(saver);
  if (options_.directory.empty() || options_.chief.mirror.directory.empty()) return;
  if (!mirror_) {
    mirror_ =
        std::make_shared<CheckpointMirror>(options_.directory, options_.chief.mirror, *options_.files, *options_.clock);
  }
  if (saver.is_as_restored()) mirror_->add(saver.last_saved());
  mirroring_ = saver.on_saved([mirror = mirror_](const std::string& prefix) { mirror->add(prefix); });
}

void ChiefTenure::limit_waits_for_events() {
  if (options_.directory.empty() || budget().deadline() == nullptr) return;
  limit_waits_for_events(FileWriterCache::find(options_.directory));
}

void ChiefTenure::limit_waits_for_events(std::shared_ptr<FileWriter> writer) {
  event_limits_.clear();
  add_event_limit(std::move(writer));
  if (!options_.summary_directory.empty()) add_event_limit(FileWriterCache::find(options_.summary_directory));
}

void ChiefTenure::add_event_limit(std::shared_ptr<FileWriter> writer) {
  const Deadline* const deadline = budget().deadline();
  if (writer == nullptr || deadline == nullptr) return;
  const auto is_same = [&](const EventLimit& other) { return other.writer == writer; };
  if (std::any_of(event_limits_.begin(), event_limits_.end(), is_same)) return;
  auto limit = std::make_unique<FileWriter::WaitLimit>(*writer, *deadline);
  event_limits_.push_back({std::move(writer), std::move(limit)});
}

void ChiefTenure::end(Teardown& end, const TrainingEnd& front_end) {
  const auto step = [&](const char* what, const auto& body) {
    if (body) end.step(what, [&] { body(); });
  };
  std::optional<UnsavedSteps> unsaved;
  is_kept_ = false;
  if (status_) status_->ends();
  if (!end.error()) step("the hooks", front_end.hooks);
  step("the threads", front_end.threads);
  if (!end.error() && front_end.last_checkpoint) {
    step("the last checkpoint", front_end.last_checkpoint);
    if (!end.error() && budget().is_limited()) step("the threads", front_end.threads);
  }
  end.step("the count of unsaved steps", [&] {
    if (front_end.unsaved_steps) unsaved = front_end.unsaved_steps();
  });
  event_limits_.clear();  // what follows brings its own
  step("the event file", front_end.events);
  end.step("the event file", [&] {
    if (lock_) flush_shared_events(options_.directory, budget().deadline());
  });
  end.step("the mirror", [&] { close_mirror(); });
  step("the session", front_end.session);
  end.step("the journal", [&] { close_journal(end.error(), unsaved); });
  end.step("the lock", [&] { lock_.reset(); });
  if (page_) end.step("the status page", [&] { page_->end(); });
  is_taken_ = false;
}

void ChiefTenure::end_session(Teardown& end, const TrainingEnd& front_end, const std::string& why) {
  if (status_) status_->prepares(why);
  if (front_end.threads) end.step("the threads", front_end.threads);
  event_limits_.clear();
  if (front_end.events) end.step("the event file", front_end.events);
  if (front_end.session) end.step("the session", front_end.session);
  is_kept_ = true;
}

void ChiefTenure::close_mirror() {
  mirroring_.reset();
  const auto mirror = std::exchange(mirror_, nullptr);
  if (mirror) mirror->close(budget().deadline());
}

void ChiefTenure::close_journal(const std::exception_ptr& error, const std::optional<UnsavedSteps>& unsaved) {
  const auto journal = std::exchange(journal_, nullptr);
  if (!journal) return;
  const bool is_disturbed = options_.saves && options_.saves->status().consecutive_failures > 0;
  const bool is_preempted = options_.chief.preemption != nullptr && options_.chief.preemption->is_preempted();
  journal->ended(error, is_disturbed, unsaved ? unsaved->share : 0, is_preempted);
}

}  // namespace longhaul
