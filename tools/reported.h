#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "longhaul/console/text/report.h"
#include "longhaul/console/text/terminal.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace longhaul::tools {

// Ends the program with that status, without a message: what there is to say was said.
struct ExitWith {
  int status = 0;
};

// A subcommand that looks at something and reports it: the option --json, and what its callback does with a report.
class ReportingCommand {
 public:
  // Adds the subcommand; `about` is its line in the list of commands, `footer` its examples.
  ReportingCommand(CLI::App& program, const std::string& name, const std::string& about, const std::string& footer);

  CLI::App& app() { return *app_; }
  bool wants_json() const { return *json_; }
  console::Terminal terminal() const;
  // Shown on stderr while bytes are read, if that is a terminal.
  console::Progress progress() const;

  // Has the subcommand print what `make` returns. ExitWith{1}: something is wrong. An error is printed as JSON too, so
  // that stdout is valid whatever happens.
  void reports(std::function<console::Report()> make);

 private:
  const std::string name_;
  CLI::App* app_;
  const std::shared_ptr<bool> json_ = std::make_shared<bool>(false);
};

// Warnings of the library go to stderr, a line each, fit for a terminal; in JSON if the log is (set_log_format()). One
// that comes again, since a file is looked at several times, is told once.
void show_warnings();

// Writes to stdout. An error of it ends the program with status 1.
void print(const std::string& text);

// Writes to stderr. That it is closed, full, or that nobody reads it any more is ignored, and does not end the program
// (SIGPIPE); what a stopped reader does not take within seconds is lost. Any thread may call.
void tell(const std::string& text);

// "longhaul: ..." on stderr, or a line of a log in JSON.
void print_error(const std::string& message);

// What an option with a number is checked with: it is no NaN, and lies between the two, which may be reached.
CLI::Validator number_between(double lowest, double highest);

}  // namespace longhaul::tools
