#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>

namespace longhaul::examples {

// Tells how a training goes: on a terminal one line that is written over again and again, elsewhere a plain line every
// few seconds. One thread.
class Progress {
 public:
  // From `first_step` to `last_step`.
  Progress(int64_t first_step, int64_t last_step, std::FILE* out = stdout);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Whether it is time for another line; cheap, so that it can be asked after each step.
  bool due(int64_t step);
  void show(int64_t step, double loss);

  double steps_per_second(int64_t step) const;  // since the start

 private:
  using Clock = std::chrono::steady_clock;

  std::FILE* const out_;
  const bool terminal_;
  const int64_t first_step_, last_step_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_;
  int64_t next_look_;  // the step at which the clock is asked again
  bool line_open_ = false;
};

}  // namespace longhaul::examples
