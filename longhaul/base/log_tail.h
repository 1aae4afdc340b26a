#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "longhaul/base/log.h"
#include "longhaul/base/mutex.h"

namespace longhaul {

// A message of the log, for those who read it later.
struct LogLine {
  double time = 0;  // seconds since 1970
  LogLevel level = LogLevel::kInfo;
  std::string text;  // at most kMostTailText bytes of it
};

inline constexpr size_t kMostTailText = 1000;

// While it exists, keeps the last messages of the whole process from kInfo on, whatever the sink does with them: one
// that hangs or throws takes none away. Any thread may call.
class LogTail {
 public:
  explicit LogTail(size_t most_lines = 200);
  ~LogTail();
  LogTail(const LogTail&) = delete;
  LogTail& operator=(const LogTail&) = delete;

  std::vector<LogLine> lines() const;   // oldest first
  int64_t count(LogLevel level) const;  // of all messages of this level since the construction

  void note(LogLevel level, const std::string& message);  // for the log

 private:
  const size_t most_lines_;
  mutable Mutex mutex_;
  std::deque<LogLine> lines_ GUARDED_BY(mutex_);
  int64_t counts_[4] GUARDED_BY(mutex_) = {};
};

// Calls note() of each; costs the read of an atomic if there is none.
void note_in_log_tails(LogLevel level, const std::string& message);

}  // namespace longhaul
