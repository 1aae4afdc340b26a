#pragma once

#include <string>
#include <string_view>

#include "longhaul/train/journal/run_history.h"

namespace longhaul {

// The text of a journal: docs/formats/run_journal.md.

// One line, with its end.
std::string format_run_event(const RunEvent& event);

// A whole file that says what the history knows.
std::string format_run_history(const RunHistory& history);

struct ParsedJournal {
  RunHistory history;
  int damaged_lines = 0;  // which were skipped, an unfinished last one not counted
};

// Never fails: what cannot be read is skipped, line by line.
ParsedJournal parse_run_journal(std::string_view text);

}  // namespace longhaul
