#include "tools/reported.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "longhaul/base/clock.h"
#include "longhaul/base/json_log.h"
#include "longhaul/base/size_text.h"
#include "longhaul/base/without_sigpipe.h"
#include "longhaul/console/text/plot.h"
#include "longhaul/console/text/shown_text.h"
#include "longhaul/console/text/told_messages.h"

namespace longhaul::tools {
namespace {

constexpr Seconds kBetweenDrawings{0.1};
constexpr size_t kColumnsOfBar = 30;

// A line on a terminal that is drawn again and again, and cleared at the end; without escapes, as NO_COLOR wants
// it.
class ProgressLine {
 public:
  explicit ProgressLine(const console::Terminal& terminal) : terminal_(terminal) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void draw(uint64_t done, uint64_t total) {
    const Seconds now = Clock::real().now();
    if (done >= total) return clear();
    if (now - began_ < kBetweenDrawings || now - drawn_ < kBetweenDrawings) return;
    drawn_ = now;
    const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
    const std::string bar = console::bar_text(share, kColumnsOfBar, terminal_);
    const std::string rest(kColumnsOfBar - std::min(kColumnsOfBar, console::columns_of(bar)), ' ');
    const double rate = static_cast<double>(done) / (now - began_).count();
    const std::string numbers = fmt::format("{:3.0f} %  {} of {}  {}/s", 100 * share, size_text(done), size_text(total),
                                            size_text(static_cast<uint64_t>(rate)));
    replace_by(fmt::format("[{}{}] {}", bar, rest, numbers), numbers);
  }

 private:
  // A line that fills the terminal could not be drawn again.
  void replace_by(const std::string& wide, const std::string& narrow) {
    const size_t most = terminal_.columns - 1;
    const std::string line = console::columns_of(wide) <= most ? wide : narrow.substr(0, most);
    const size_t columns = console::columns_of(line);
    tell("\r" + line + std::string(columns_ - std::min(columns_, columns), ' '));
    columns_ = columns;
  }
  void clear() {
    if (columns_ > 0) tell("\r" + std::string(columns_, ' ') + "\r");
    columns_ = 0;
  }

  const console::Terminal terminal_;
  const Seconds began_ = Clock::real().now();
  Seconds drawn_{0};
  size_t columns_ = 0;  // of what is drawn
};

std::string without_line_break(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

// Whether it takes as much as one write() may have. A terminal that is stopped, or a pipe that is full, has a while.
bool takes_more(int descriptor) {
  constexpr int kLongestMilliseconds = 3000;
  pollfd wanted{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return ::poll(&wanted, 1, kLongestMilliseconds) > 0;
}

}  // namespace

void print(const std::string& text) {
  const bool is_written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (std::fflush(stdout) != 0 || !is_written) throw std::runtime_error("standard output cannot be written");
}

void tell(const std::string& text) {
  constexpr size_t kMostAtOnce = 4096;  // that a pipe takes whole if it takes anything (PIPE_BUF)
  const WithoutSigpipe guard;
  for (std::string_view left = text; !left.empty() && takes_more(STDERR_FILENO);) {
    const ssize_t written = ::write(STDERR_FILENO, left.data(), std::min(left.size(), kMostAtOnce));
    if (written < 0 && errno != EINTR) return;
    left.remove_prefix(static_cast<size_t>(std::max<ssize_t>(written, 0)));
  }
}

void print_error(const std::string& message) {
  if (log_format() == LogFormat::kJson) return write_json_line(LogLevel::kError, without_line_break(message));
  tell(fmt::format("longhaul: {}\n", without_line_break(console::shown_lines(message))));
}

CLI::Validator number_between(double lowest, double highest) {
  return {[lowest, highest](std::string& text) {
            double number = NAN;
            const bool is_number = CLI::detail::lexical_cast(text, number);
            if (is_number && std::isfinite(number) && number >= lowest && number <= highest) return std::string();
            return fmt::format("Value {} not in range [{} - {}]", text, lowest, highest);
          },
          fmt::format("FLOAT in [{} - {}]", lowest, highest)};
}

void show_warnings() {
  set_log_sink([told = console::ToldMessages()](LogLevel level, const std::string& message) mutable {
    if (level < LogLevel::kWarning || !told.is_new(message)) return;
    if (log_format() == LogFormat::kJson) return write_json_line(level, message);
    tell(fmt::format("longhaul: warning: {}\n", without_line_break(console::shown_lines(message))));
  });
}

ReportingCommand::ReportingCommand(CLI::App& program, const std::string& name, const std::string& about,
                                   const std::string& footer)
    : name_(name), app_(program.add_subcommand(name, about)) {
  app_->footer(footer);
  app_->add_flag("--json", *json_, "Print JSON for programs, with times in seconds since 1970");
}

console::Terminal ReportingCommand::terminal() const {
  return console::terminal_at(STDOUT_FILENO);
}

console::Progress ReportingCommand::progress() const {
  const console::Terminal terminal = console::terminal_at(STDERR_FILENO);
  if (!terminal.can_redraw) return {};
  const auto line = std::make_shared<ProgressLine>(terminal);
  return [line](uint64_t done, uint64_t total) { line->draw(done, total); };
}

void ReportingCommand::reports(std::function<console::Report()> make) {
  app_->callback([name = name_, json = json_, make = std::move(make)] {
    show_warnings();
    console::Report report;
    try {
      report = make();
    } catch (const CLI::Error&) {
      throw;
    } catch (const std::exception& error) {
      if (!*json) throw;
      report.json = console::json_of(name.c_str());
      report.json["error"] = error.what();
      try {
        print(console::json_text(report.json));
      } catch (const std::exception& of_stdout) {
        print_error(of_stdout.what());
      }
      throw;
    }
    print(*json ? console::json_text(report.json) : report.text);
    if (!report.is_fine) throw ExitWith{1};
  });
}

}  // namespace longhaul::tools
