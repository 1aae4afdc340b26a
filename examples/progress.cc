#include "examples/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace longhaul::examples {
namespace {

constexpr int64_t kStepsBetweenLooks = 16;

std::string duration_text(double seconds) {
  const int64_t whole = std::llround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

Progress::Progress(int64_t first_step, int64_t last_step, std::FILE* out)
    : out_(out),
      terminal_(isatty(fileno(out)) == 1),
      first_step_(first_step),
      last_step_(last_step),
      next_look_(first_step) {}

Progress::~Progress() {
  if (line_open_) std::fputc('\n', out_);
}

bool Progress::due(int64_t step) {
  if (step < next_look_) return false;
  next_look_ = step + kStepsBetweenLooks;
  if (Clock::now() < next_) return false;
  next_ = Clock::now() + (terminal_ ? std::chrono::milliseconds(200) : std::chrono::milliseconds(5000));
  return true;
}

double Progress::steps_per_second(int64_t step) const {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  return seconds > 0 ? static_cast<double>(step - first_step_) / seconds : 0;
}

void Progress::show(int64_t step, double loss) {
  const double rate = steps_per_second(step);
  std::string line = fmt::format("step {} of {}  loss {:.4f}", step, last_step_, loss);
  if (rate > 0) {
    line +=
        fmt::format("  {:.0f} steps/s  {} left", rate, duration_text(static_cast<double>(last_step_ - step) / rate));
  }
  std::fputs((terminal_ ? "\r\x1b[K" + line : line + "\n").c_str(), out_);
  std::fflush(out_);
  line_open_ = terminal_;
}

}  // namespace longhaul::examples
