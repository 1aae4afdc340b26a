#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/train/journal/run_history.h"

namespace longhaul {

// The text of a journal: docs/formats/run_journal.md.

// One line, including its line break.
std::string format_run_event(const RunEvent& event);

// A complete file with the contents of the history.
std::string format_run_history(const RunHistory& history);

// The text of a kEnded whose program asks for its restart.
inline constexpr const char* kPreemptedText = "preempted";
// The text of kStopRequested where no other reason is known: a program that has made all its steps stops, too.
inline constexpr const char* kStopText = "a stop was requested";

struct ParsedJournal {
  RunHistory history;
  std::optional<RunEvent> last;  // the last event since the sums; nullopt: none
  int damaged_lines = 0;         // skipped ones, not counting an unfinished last line
  int lines = 0;                 // the others, without the first
};

// Never fails: lines that cannot be read are skipped.
ParsedJournal parse_run_journal(std::string_view text);

// The events that follow the sums, oldest first: those of the newest run, and none of runs before it.
std::vector<RunEvent> events_in_run_journal(std::string_view text);

// "ended", "killed", ...: how a run ended, for people too.
std::string_view name_of_end(PastRun::End end);

}  // namespace longhaul
