// The text of a file in `.readers`. What was parsed can be written, and parsed again as the same but for times, of
// which milliseconds are written.

#include <cmath>
#include <optional>

#include "longhaul/checkpoint/directory/reader_notes.h"
#include "tests/fuzz/quiet.h"

namespace longhaul {
namespace {

std::optional<ReaderNote> parse(const uint8_t* data, size_t size) {
  try {
    return parse_reader_note({reinterpret_cast<const char*>(data), size}, "note");
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace
}  // namespace longhaul

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  std::optional<ReaderNote> note = parse(data, size);
  if (!note) return 0;
  if (note->checkpoint.empty() || note->checkpoint.find('/') != note->checkpoint.npos) __builtin_trap();
  if (note->metric && std::isnan(*note->metric)) __builtin_trap();
  ReaderNote again = parse_reader_note(format_reader_note(*note), "note");
  again.reader.since = note->reader.since;
  again.reader.heartbeat = note->reader.heartbeat;
  if (*note != again) __builtin_trap();
  return 0;
}
