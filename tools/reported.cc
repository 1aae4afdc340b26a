#include "tools/reported.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "longhaul/base/clock.h"
#include "longhaul/base/log.h"
#include "longhaul/base/size_text.h"
#include "longhaul/console/text/plot.h"
#include "longhaul/console/text/shown_text.h"

namespace longhaul::tools {
namespace {

constexpr Seconds kBetweenDrawings{0.1};
constexpr size_t kColumnsOfBar = 30;

// A line on a terminal that is drawn again and again, and cleared at the end.
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
    is_drawn_ = true;
    const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
    const std::string bar = console::bar_text(share, kColumnsOfBar, terminal_);
    const std::string rest(kColumnsOfBar - std::min(kColumnsOfBar, console::columns_of(bar)), ' ');
    const double rate = static_cast<double>(done) / (now - began_).count();
    fmt::print(stderr, "\r[{}{}] {:3.0f} %  {} of {}  {}/s\x1b[K", bar, rest, 100 * share, size_text(done),
               size_text(total), size_text(static_cast<uint64_t>(rate)));
    std::fflush(stderr);
  }

 private:
  void clear() {
    if (is_drawn_) fmt::print(stderr, "\r\x1b[K");
    is_drawn_ = false;
  }

  const console::Terminal terminal_;
  const Seconds began_ = Clock::real().now();
  Seconds drawn_{0};
  bool is_drawn_ = false;
};

std::string without_line_break(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

void print(const std::string& text) {
  const bool is_written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (std::fflush(stdout) != 0 || !is_written) throw std::runtime_error("standard output cannot be written");
}

void print_error(const std::string& message) {
  fmt::print(stderr, "longhaul: {}\n", without_line_break(console::shown_lines(message)));
}

void show_warnings() {
  set_log_sink([](LogLevel level, const std::string& message) {
    if (level < LogLevel::kWarning) return;
    fmt::print(stderr, "longhaul: warning: {}\n", without_line_break(console::shown_lines(message)));
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
  if (!terminal.is_terminal) return {};
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
      print(console::json_text(report.json));
      throw;
    }
    print(*json ? console::json_text(report.json) : report.text);
    if (!report.is_fine) throw ExitWith{1};
  });
}

}  // namespace longhaul::tools
