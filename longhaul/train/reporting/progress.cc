#include "longhaul/train/reporting/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "longhaul/base/json_log.h"

namespace longhaul {
namespace {

constexpr auto kPauseLive = std::chrono::milliseconds(200);
constexpr auto kPausePlain = std::chrono::seconds(5);
constexpr int64_t kMostStepsBetweenLooks = 16;

std::string duration_text(double seconds) {
  const int64_t whole = std::llround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

// Three digits: a large model makes fewer than ten steps a second.
std::string rate_text(double rate) {
  return rate < 100 ? fmt::format("{:.3g} steps/s", rate) : fmt::format("{:.0f} steps/s", rate);
}

// 0: not known.
double seconds_left(int64_t step, int64_t last_step, double rate) {
  return rate > 0 && last_step >= step ? static_cast<double>(last_step - step) / rate : 0;
}

std::vector<LogMember> members_of(int64_t step, int64_t last_step, double rate, std::string_view values,
                                  std::string_view part) {
  std::vector<LogMember> members{{"event", "progress"}, {"step", step}};
  if (last_step > 0) members.push_back({"last_step", last_step});
  if (rate > 0) members.push_back({"steps_per_second", rate});
  if (rate > 0 && last_step > 0) members.push_back({"seconds_left", seconds_left(step, last_step, rate)});
  if (!values.empty()) members.push_back({"values", std::string(values)});
  if (!part.empty()) members.push_back({"part", std::string(part)});
  return members;
}

}  // namespace

Progress::Progress(int64_t first_step, std::FILE* out)
    : out_(out), terminal_(isatty(fileno(out)) == 1), first_step_(first_step), next_look_(first_step) {}

Progress::~Progress() {
  if (line_open_) std::fputc('\n', out_);
}

// The clock is asked after every step while steps are long, and after every sixteenth while they are short.
bool Progress::due(int64_t step) {
  if (step < next_look_) return false;
  const Clock::time_point now = Clock::now();
  const bool is_due = now >= next_;
  const bool is_fast = steps_per_second(step) > 1000;
  steps_between_looks_ = is_fast ? std::min(2 * steps_between_looks_, kMostStepsBetweenLooks) : 1;
  next_look_ = step + steps_between_looks_;
  if (is_due) next_ = now + (is_live() ? kPauseLive : Clock::duration(kPausePlain));
  return is_due;
}

double Progress::steps_per_second(int64_t step) const {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  return seconds > 0 ? static_cast<double>(step - first_step_) / seconds : 0;
}

bool Progress::is_live() const {
  return terminal_ && log_format() == LogFormat::kText;
}

void Progress::show(int64_t step, int64_t last_step, std::string_view values, std::string_view part) {
  const double rate = steps_per_second(step);
  std::string line;
  if (!part.empty()) line += fmt::format("{}  ", part);
  line += fmt::format("step {}", step);
  if (last_step > 0) line += fmt::format(" of {}", last_step);
  if (!values.empty()) line += fmt::format("  {}", values);
  if (rate > 0) {
    line += "  " + rate_text(rate);
    if (last_step >= step) line += fmt::format("  {} left", duration_text(seconds_left(step, last_step, rate)));
  }
  if (log_format() == LogFormat::kJson) {
    return write_json_line(LogLevel::kInfo, line, members_of(step, last_step, rate, values, part));
  }
  write(line);
}

void Progress::write(const std::string& line) {
  std::fputs((terminal_ ? "\r\x1b[K" + line : line + "\n").c_str(), out_);
  std::fflush(out_);
  line_open_ = terminal_;
}

}  // namespace longhaul
