#include "longhaul/console/trainings/training_records.h"

#include <fmt/format.h>
#include <string.h>

#include "longhaul/io/process/process_stat.h"
#include "longhaul/train/journal/crash_record.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"

namespace longhaul::console {
namespace {

constexpr uint64_t kMostBytes = 16 * 1024 * 1024;  // of a journal

ChiefRecord::State state_of_owner(const OwnerRecord& owner, double heartbeat_at, double now) {
  switch (state_of(owner.process)) {
    case ProcessState::kRunning: return ChiefRecord::State::kAlive;
    case ProcessState::kGone: return ChiefRecord::State::kDead;
    case ProcessState::kUnknown: break;
  }
  return now - heartbeat_at > owner.limit ? ChiefRecord::State::kSilent : ChiefRecord::State::kAlive;
}

bool is_held(const ProcessIdentity& process) {
  return state_of(process) == ProcessState::kRunning && longhaul::is_held(process.pid);
}

// What the next run would find out about one without an end.
void look_for_crash(FileSystem& files, const std::string& directory, RunHistory& history) {
  const RunHistory::Sums& sums = history.sums();
  if (sums.phase == RunHistory::Phase::kStopped) return;
  const auto signal = read_crash_record(files, journal_path(directory) + ".crash", sums.runs);
  if (!signal) return;
  history.apply({.kind = RunEvent::Kind::kDied,
                 .time = sums.until,
                 .text = fmt::format("signal {} ({})", *signal, strsignal(*signal))});
}

}  // namespace

ChiefRecord chief_of(FileSystem& files, const std::string& directory, double now) {
  ChiefRecord chief;
  try {
    chief.owner = read_owner(files, directory);
    if (!chief.owner) return chief;
    chief.heartbeat_at = files.modified_at(owner_path(directory));
    chief.state = state_of_owner(*chief.owner, chief.heartbeat_at, now);
    chief.is_held = is_held(chief.owner->process);
  } catch (const NotFoundError&) {  // its tenure ended meanwhile
    chief = {};
  } catch (const Error& error) {
    chief.problem = error.what();
  }
  return chief;
}

JournalRecord journal_of(FileSystem& files, const std::string& directory) {
  JournalRecord journal;
  try {
    const std::string text = read_file(files, journal_path(directory), kMostBytes);
    ParsedJournal parsed = parse_run_journal(text);
    if (parsed.lines == 0) {  // a chief writes the first two at once
      throw DataLossError(journal_path(directory) + ": no line of it can be read, so it is damaged, or no journal");
    }
    journal.is_there = true;
    journal.history = std::move(parsed.history);
    journal.damaged_lines = parsed.damaged_lines;
    journal.events = events_in_run_journal(text);
    look_for_crash(files, directory, journal.history);
  } catch (const NotFoundError&) {
  } catch (const Error& error) {
    journal.problem = error.what();
  }
  return journal;
}

}  // namespace longhaul::console
