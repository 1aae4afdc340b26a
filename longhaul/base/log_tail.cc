#include "longhaul/base/log_tail.h"

#include <algorithm>
#include <atomic>

#include "longhaul/base/clock.h"

namespace longhaul {
namespace {

struct Tails {
  std::atomic<int> count{0};
  Mutex mutex;
  std::vector<LogTail*> all GUARDED_BY(mutex);
};

Tails& tails() {
  static Tails* const tails = new Tails;  // outlives every static object that may still log while the process ends
  return *tails;
}

// Cut between two letters of UTF-8, not within one.
std::string cut_text(const std::string& message) {
  if (message.size() <= kMostTailText) return message;
  size_t end = kMostTailText;
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xc0) == 0x80) --end;
  return message.substr(0, end) + " ...";
}

}  // namespace

LogTail::LogTail(size_t most_lines) : most_lines_(most_lines) {
  MutexLock lock(tails().mutex);
  tails().all.push_back(this);
  ++tails().count;
}

LogTail::~LogTail() {
  MutexLock lock(tails().mutex);
  std::erase(tails().all, this);
  --tails().count;
}

std::vector<LogLine> LogTail::lines() const {
  MutexLock lock(mutex_);
  return {lines_.begin(), lines_.end()};
}

int64_t LogTail::count(LogLevel level) const {
  MutexLock lock(mutex_);
  return counts_[static_cast<size_t>(level)];
}

void LogTail::note(LogLevel level, const std::string& message) {
  LogLine line{Clock::real().wall_time(), level, cut_text(message)};
  MutexLock lock(mutex_);
  ++counts_[static_cast<size_t>(level)];
  if (most_lines_ == 0) return;
  if (lines_.size() >= most_lines_) lines_.pop_front();
  lines_.push_back(std::move(line));
}

void note_in_log_tails(LogLevel level, const std::string& message) {
  if (level < LogLevel::kInfo || tails().count.load(std::memory_order_relaxed) == 0) return;
  MutexLock lock(tails().mutex);
  for (LogTail* const tail : tails().all) tail->note(level, message);
}

}  // namespace longhaul
