#include "longhaul/train/journal/last_run_event.h"

#include "longhaul/base/log.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"

namespace longhaul {
namespace {

constexpr uint64_t kMostJournalBytes = uint64_t{16} << 20;  // as for the next run

}  // namespace

std::optional<RunEvent> last_run_event(FileSystem& files, const std::string& directory) {
  const std::string path = journal_path(directory);
  try {
    if (files.exists(path)) return parse_run_journal(read_file(files, path, kMostJournalBytes)).last;
  } catch (const Error& error) {
    log_debug("{}", error.what());
  }
  return std::nullopt;
}

bool is_final_end(const RunEvent& event) {
  return event.kind == RunEvent::Kind::kEnded && event.text != kPreemptedText;
}

}  // namespace longhaul
