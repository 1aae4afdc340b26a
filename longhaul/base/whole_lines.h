#pragma once

#include <string_view>

#include "longhaul/base/clock.h"

namespace longhaul {

// Writes lines to a descriptor that anybody may have closed, filled or stopped reading: each with one write(), if a
// pipe takes it at once (PIPE_BUF bytes) or it is no pipe. A line that was cut is ended before the next one. One thread
// at a time.
class WholeLines {
 public:
  // `timeout`: how long a reader that has stopped is waited for: for one line, and not at all for the next ones, until
  // it reads again.
  explicit WholeLines(int descriptor, Seconds timeout = Seconds{3}) : descriptor_(descriptor), timeout_(timeout) {}

  // `line` ends with a line break. False: it is lost, in whole or in part. No signal ends the process (SIGPIPE).
  bool write(std::string_view line);

 private:
  bool write_all(std::string_view& left) const;

  const int descriptor_;
  const Seconds timeout_;
  bool waits_ = true;
  bool is_cut_ = false;  // the last line
};

}  // namespace longhaul
