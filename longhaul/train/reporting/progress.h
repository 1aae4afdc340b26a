#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/whole_lines.h"
#include "longhaul/train/reporting/logged_tensor.h"

namespace longhaul {

// What a line of progress says.
struct ProgressLine {
  int64_t step = 0;
  int64_t last_step = 0;                            // at which the run ends; 0: not known
  std::string values = "";                          // "loss 0.1049", or nothing
  std::string part = "";                            // "epoch 3 of 10", or nothing
  std::optional<Seconds> saved_ago = std::nullopt;  // the last checkpoint of this run; nullopt: none, or not known
  int failed_saves = 0;                             // since then
};

// Shows how a training run progresses: on a terminal one line that is rewritten five times a second, and elsewhere a
// plain line every five seconds:
//
//   step 4064 of 8000  loss 0.1049  809 steps/s  5 s left  saved 35 s ago
//
// If the log is in JSON (set_log_format()), it is a line of the log, at info, every five seconds. A reader that has
// stopped (a terminal after Ctrl-S, a pipe) or gone costs lines, and neither time nor the process. Messages of the log
// take the place of a live line, which then comes again. One thread.
class Progress {
 public:
  // Counts from `first_step`. `out` is not closed.
  explicit Progress(int64_t first_step, std::FILE* out = stdout);
  ~Progress();  // ends a live line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Whether it is time for another line. Cheap: call it after each step.
  bool due(int64_t step);
  void show(const ProgressLine& line);

  double steps_per_second(int64_t step) const;  // since the construction

  bool is_live() const;      // on a terminal
  Seconds interval() const;  // between two lines

 private:
  using Clock = std::chrono::steady_clock;
  void write(const std::string& line);
  size_t columns() const;  // that the terminal has; 0: not known

  std::FILE* const out_;
  const bool terminal_;
  const int64_t first_step_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_;
  int64_t next_look_;  // the step at which the clock is asked again
  int64_t steps_between_looks_ = 1;
  WholeLines lines_;
};

// What Progress::interval() is of that file.
Seconds progress_interval(std::FILE* out);

// What a Supervisor (ServiceOptions::progress) and a ProgressHook show of a training. For the time that is left, a
// Supervisor takes the last step from StatusOptions::last_step, and a monitored session from a StopAtStepHook.
struct ProgressOptions {
  // Shown with their names: {{"loss", loss}}. They are computed along with a step, which has the feeds that they need,
  // and only when a line is due; where steps are long, they are of the newest step that has done so.
  std::vector<LoggedTensor> values{};
  std::FILE* out = stdout;
};

// InvalidArgumentError: `out` is null. The message names whose options they are.
void check_progress(const ProgressOptions& options, const char* whose);

// "loss 0.1049  accuracy 0.98". As many values as tensors.
std::string progress_values(const std::vector<LoggedTensor>& tensors, const std::vector<Tensor>& values);

}  // namespace longhaul
