#include "longhaul/train/checkpointing/shown_saves.h"

#include <algorithm>

namespace longhaul {

ProgressLine with_saves(ProgressLine line, const SaveStatus& saves, double now) {
  if (!saves.last_prefix.empty()) line.saved_ago = Seconds{std::max(0.0, now - saves.last_success_time)};
  line.failed_saves = saves.consecutive_failures;
  return line;
}

}  // namespace longhaul
