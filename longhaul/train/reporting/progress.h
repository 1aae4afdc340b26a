#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace longhaul {

// Shows how a training run progresses: on a terminal one line that is rewritten five times a second, elsewhere a plain
// line every five seconds:
//
//   step 4064 of 8000  loss 0.1049  809 steps/s  5 s left
//
// If the log is in JSON (set_log_format()), it is a line of the log, at info, every five seconds. One thread.
class Progress {
 public:
  // Counts from `first_step`. `out` is not closed.
  explicit Progress(int64_t first_step, std::FILE* out = stdout);
  ~Progress();  // ends a live line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Whether it is time for another line. Cheap: call it after each step.
  bool due(int64_t step);
  // `last_step`: at which the run ends; 0: not known. `values`: "loss 0.1049", or nothing. `part`: "epoch 3 of 10", or
  // nothing.
  void show(int64_t step, int64_t last_step, std::string_view values = "", std::string_view part = "");

  double steps_per_second(int64_t step) const;  // since the construction

 private:
  bool is_live() const;
  void write(const std::string& line);

  using Clock = std::chrono::steady_clock;

  std::FILE* const out_;
  const bool terminal_;
  const int64_t first_step_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_;
  int64_t next_look_;  // the step at which the clock is asked again
  int64_t steps_between_looks_ = 1;
  bool line_open_ = false;
};

}  // namespace longhaul
