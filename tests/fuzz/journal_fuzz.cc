// A flag: with the lowest bit, each line's checksum is put right; then the text of a run.journal file. Whatever it is,
// it is read; and what was understood can be written, and read again as the same.
#include <fmt/format.h>

#include "longhaul/io/records/crc32c.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "tests/fuzz/quiet.h"

namespace longhaul {
namespace {

constexpr size_t kChecksum = 9;  // eight digits and a space

std::string with_right_checksums(std::string_view text) {
  std::string repaired;
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    const std::string_view line = text.substr(0, end).substr(std::min(kChecksum, end));
    repaired += fmt::format("{:08x} {}\n", crc32c(line), line);
    text.remove_prefix(end + 1);
  }
  return repaired;
}

// Counts and times beyond these are refused when they are read, and may be reached by adding to what is just below.
bool is_near_limits(const RunHistory& history) {
  constexpr int64_t kMany = int64_t{1} << 61;
  bool many_crashes = false;
  for (const auto& crashes : history.sums().crashes) many_crashes |= crashes.count > kMany;
  for (const PastRun& run : history.runs())
    many_crashes |= run.saves > kMany || run.lost_sessions > kMany || run.failed_saves.in_all > kMany;
  return many_crashes || history.sums().runs > kMany || history.sums().interruptions > kMany ||
         history.breakdown().total() > Seconds{5e14} || history.uncounted().time > Seconds{5e14} ||
         history.uncounted().training > Seconds{5e14} || history.unsaved().time() > Seconds{5e14} ||
         history.at_stake().time() > Seconds{5e14};
}

}  // namespace
}  // namespace longhaul

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  if (size == 0) return 0;
  std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] & 1) text = with_right_checksums(text);
  const RunHistory history = parse_run_journal(text).history;
  if (is_near_limits(history)) return 0;
  const ParsedJournal again = parse_run_journal(format_run_history(history));
  if (again.damaged_lines != 0 || again.history != history) __builtin_trap();
  if (describe(history.breakdown(), history.sums().runs).empty()) __builtin_trap();
  return 0;
}
