#include "longhaul/train/checkpointing/save_once.h"

#include <fmt/format.h>

#include "longhaul/base/log.h"
#include "longhaul/base/size_text.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/reporting/run_events.h"

namespace longhaul {
namespace {

// The step of a save, once its variables were read: what fails from then on, are the files.
struct SnapshotNote {
  bool is_taken = false;
  std::optional<int64_t> step;
};

void report_failure(const SaveTarget& target, std::optional<int64_t> step, const std::exception_ptr& error) {
  const bool is_to_be_logged = target.attempts.is_to_be_logged(error);
  const int failures = target.attempts.failed(error);
  const std::string name = step ? fmt::format("{}-{}", target.save_path, *step) : target.save_path;
  const std::string text =
      fmt::format("checkpoint {} could not be saved (failure {} in a row): {}", name, failures, message_of(error));
  if (is_to_be_logged) log_error("{}", text);
  if (target.writer != nullptr) write_failed_save(*target.writer, text, failures, step.value_or(0));
  if (target.journal != nullptr) target.journal->save_failed(failures, step, message_of(error));
  target.attempts.raise_if_too_many();
}

void note_in_journal(const SaveTarget& target, const SaveReport& report) {
  const SaveCosts costs =
      target.costs ? target.costs(report) : SaveCosts{report.snapshot, report.total, report.snapshot};
  if (target.journal != nullptr) target.journal->saved(report.prefix, report.step, costs);
}

void log_saved(const SaveReport& report) {
  log_info("checkpoint {} was saved: {}{} in {:.2f} s", report.prefix,
           report.step ? fmt::format("step {}, ", *report.step) : "", size_text(report.bytes), report.total.count());
}

// `report`: absent if there was nothing to do.
void report_success(const SaveTarget& target, std::optional<int64_t> step, const std::string& prefix,
                    const std::optional<SaveReport>& report) {
  const int failures = target.attempts.succeeded(prefix);
  if (report) log_saved(*report);
  if (failures > 0) log_info("checkpoint {} was saved after {} failed saves", prefix, failures);
  if (report) note_in_journal(target, *report);
  if (failures > 0 && !report && target.journal != nullptr) target.journal->saves_work_again();
  if (target.writer == nullptr) return;
  if (failures > 0) write_saves_work_again(*target.writer, step.value_or(0));
  if (report && step) write_checkpoint_taken(*target.writer, target.save_path, prefix);
}

}  // namespace

Pause pause_until_stop(const Coordinator& coord) {
  return [coord](Seconds time) { return !coord.wait_for_stop(time); };  // wait: the saver's limit; a stop ends it
}

std::optional<std::string> save_once(const SaveTarget& target, Session& session) {
  const StepSource step = target.global_step.valid() ? StepSource(target.global_step) : StepSource();
  SnapshotNote snapshot;
  std::optional<SaveReport> report;
  const SaveOptions options{.skip_if_saved = true,
                            .after_snapshot =
                                [&](std::optional<int64_t> at) {
                                  snapshot = {true, at};
                                  // A restart does not write again what is of steps before the checkpoint.
                                  if (target.writer != nullptr) flush_or_log(*target.writer, target.deadline);
                                },
                            .before_write = target.before_write,
                            .after_save = [&](const SaveReport& done) { report = done; },
                            .pause_for_limit = target.pause,
                            .relative_paths = target.relative_paths};
  std::string prefix;
  try {
    prefix = target.saver.save(session, target.save_path, step, options);
  } catch (const DirectoryLostError&) {
    throw;
  } catch (const std::exception&) {
    if (!snapshot.is_taken) throw;
    report_failure(target, snapshot.step, std::current_exception());
    return std::nullopt;
  }
  report_success(target, snapshot.step, prefix, report);
  return prefix;
}

std::string save_last(const SaveTarget& target, Session& session, std::optional<Seconds> timeout,
                      const Deadline* deadline) {
  SaveTarget last = target;
  last.pause = [](Seconds) { return false; };
  std::optional<std::string> prefix;
  const auto attempt = [&] {
    prefix = save_once(last, session);
    return prefix.has_value();
  };
  target.attempts.insist(attempt, timeout, deadline);
  return *prefix;
}

}  // namespace longhaul
