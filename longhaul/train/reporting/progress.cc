#include "longhaul/train/reporting/progress.h"

#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <stdio_ext.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/base/json_log.h"
#include "longhaul/base/live_line.h"
#include "longhaul/base/without_sigpipe.h"

namespace longhaul {
namespace {

constexpr Seconds kPauseLive{0.2}, kPausePlain{5};
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

std::string saves_text(int count) {
  return fmt::format("{} save{}", count, count == 1 ? "" : "s");
}

std::vector<LogMember> members_of(const ProgressLine& line, double rate) {
  std::vector<LogMember> members{{"event", "progress"}, {"step", line.step}};
  if (line.last_step > 0) members.push_back({"last_step", line.last_step});
  if (rate > 0) members.push_back({"steps_per_second", rate});
  if (rate > 0 && line.last_step > 0)
    members.push_back({"seconds_left", seconds_left(line.step, line.last_step, rate)});
  if (!line.values.empty()) members.push_back({"values", line.values});
  if (!line.part.empty()) members.push_back({"part", line.part});
  if (line.saved_ago) members.push_back({"saved_seconds_ago", line.saved_ago->count()});
  if (line.failed_saves > 0) members.push_back({"failed_saves", int64_t{line.failed_saves}});
  return members;
}

std::string text_of(const ProgressLine& line, double rate) {
  std::string text;
  if (!line.part.empty()) text += line.part + "  ";
  text += fmt::format("step {}", line.step);
  if (line.last_step > 0) text += fmt::format(" of {}", line.last_step);
  if (!line.values.empty()) text += "  " + line.values;
  if (rate > 0) {
    text += "  " + rate_text(rate);
    if (line.last_step >= line.step)
      text += fmt::format("  {} left", duration_text(seconds_left(line.step, line.last_step, rate)));
  }
  if (line.saved_ago) text += fmt::format("  saved {} ago", duration_text(line.saved_ago->count()));
  if (line.failed_saves > 0)
    text += fmt::format("{} {} failed", line.saved_ago ? "," : " ", saves_text(line.failed_saves));
  return text;
}

// What the program has printed, and still holds, comes before the line, unless its reader takes no more of it now.
void flush_what_was_printed(std::FILE* out) {
  const size_t pending = __fpending(out);
  if (pending == 0 || pending > PIPE_BUF) return;
  pollfd wanted{.fd = fileno(out), .events = POLLOUT, .revents = 0};
  if (::poll(&wanted, 1, 0) <= 0) return;  // wait: none
  const WithoutSigpipe guard;
  std::fflush(out);
}

// To fewer bytes than the terminal has columns (0: not known), and whole characters.
std::string cut(const std::string& line, size_t columns) {
  if (columns < 2 || line.size() < columns) return line;
  size_t end = columns - 1;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;
  return line.substr(0, end);
}

// A number has few digits, to be read at a glance.
std::string value_text(const Tensor& value) {
  const bool is_number = value.num_elements() == 1 && is_floating(value.dtype());
  return is_number ? fmt::format("{:.4g}", value.item<double>()) : text_of(value);
}

}  // namespace

Progress::Progress(int64_t first_step, std::FILE* out)
    : out_(out),
      terminal_(isatty(fileno(out)) == 1),
      first_step_(first_step),
      next_look_(first_step),
      lines_(fileno(out), Seconds{0}) {}

Progress::~Progress() {
  if (terminal_ && take_live_line()) lines_.write("\n");
}

// The clock is asked after every step while steps are long, and after every sixteenth while they are short.
bool Progress::due(int64_t step) {
  if (step < next_look_) return false;
  const Clock::time_point now = Clock::now();
  const bool is_due = now >= next_;
  const bool is_fast = steps_per_second(step) > 1000;
  steps_between_looks_ = is_fast ? std::min(2 * steps_between_looks_, kMostStepsBetweenLooks) : 1;
  next_look_ = step + steps_between_looks_;
  if (is_due) next_ = now + std::chrono::duration_cast<Clock::duration>(interval());
  return is_due;
}

double Progress::steps_per_second(int64_t step) const {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  return seconds > 0 ? static_cast<double>(step - first_step_) / seconds : 0;
}

Seconds progress_interval(std::FILE* out) {
  return isatty(fileno(out)) == 1 && log_format() == LogFormat::kText ? kPauseLive : kPausePlain;
}

bool Progress::is_live() const {
  return terminal_ && log_format() == LogFormat::kText;
}

Seconds Progress::interval() const {
  return is_live() ? kPauseLive : kPausePlain;
}

void Progress::show(const ProgressLine& line) {
  const double rate = steps_per_second(line.step);
  const std::string text = text_of(line, rate);
  if (log_format() == LogFormat::kJson) return write_json_line(LogLevel::kInfo, text, members_of(line, rate));
  write(text);
}

// What the program has printed comes before it. A line that is wider than the terminal could not be replaced.
void Progress::write(const std::string& line) {
  flush_what_was_printed(out_);
  if (!terminal_) {
    lines_.write(line + "\n");
    return;
  }
  note_live_line();  // before it is there: a message of the log may come between
  if (!lines_.write(std::string(kClearLine) + cut(line, columns()))) take_live_line();
}

size_t Progress::columns() const {
  winsize size{};
  return ::ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void check_progress(const ProgressOptions& options, const char* whose) {
  if (options.out == nullptr) throw InvalidArgumentError(fmt::format("{}: its file is a null pointer", whose));
}

std::string progress_values(const std::vector<LoggedTensor>& tensors, const std::vector<Tensor>& values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i)
    text += fmt::format("{}{} {}", i > 0 ? "  " : "", excerpt(tensors[i].tag), excerpt(value_text(values[i])));
  return text;
}

}  // namespace longhaul
