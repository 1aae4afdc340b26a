#pragma once

#include <memory>
#include <string>

#include "longhaul/base/mutex.h"
#include "longhaul/events/file_writer.h"
#include "longhaul/train/journal/run_journal.h"

namespace longhaul {

// The tag of the reports in the events: texts.
inline constexpr char kHangTag[] = "longhaul/hang";

// Where a report goes besides the log; each may be null.
struct HangRecords {
  std::shared_ptr<RunJournal> journal;
  std::shared_ptr<FileWriter> writer;
};

struct SeenHang {
  Seconds without_step{0};
  Seconds limit{0};
  Seconds median_step{0};  // 0: no step was seen
  bool is_new = true;      // false: it was reported before
};

// Reports the stacks of all threads. What it writes may wait for a file system that hangs.
void report_hang(const SeenHang& hang, const HangRecords& records);
void report_end_of_hang(Seconds lasted);

// Before the process is ended for it: the journal gets the end of this run. `how`: "with status 79".
void record_end_by_hang(const SeenHang& hang, const HangRecords& records, const std::string& how);

}  // namespace longhaul
