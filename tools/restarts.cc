// longhaul run: a program that is started again when it asks for it or crashes.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/base/json_log.h"
#include "longhaul/console/restarts/restarting_run.h"
#include "longhaul/console/text/shown_text.h"
#include "longhaul/console/text/times.h"
#include "tools/reported.h"
#include "tools/subcommands.h"

namespace longhaul::tools {
namespace {

constexpr char kAboutRun[] =
    "  longhaul run -- ./train --logdir=runs/demo\n"
    "  longhaul run --max-restarts=3 -- python3 train.py\n"
    "  ENTRYPOINT [\"longhaul\", \"run\", \"--\", \"/train\"]       in a Dockerfile: it is fit to be the first "
    "process\n"
    "\n"
    "Starts the command again after exit status 75 (preempted) and after a crash: a signal, or another status than\n"
    "0, 2 (wrong usage), 126 and 127 (a shell cannot start it). Pauses grow from --pause to --longest-pause. A start\n"
    "that lasts for --steady seconds gives the whole budget back, and begins with the first pause again.\n"
    "\n"
    "SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on. After any of them but SIGUSR2 nothing is\n"
    "started again: it waits for the program, and ends as it does. What a program leaves behind is ended before the\n"
    "next start. If longhaul itself is killed, the program gets SIGTERM.\n"
    "\n"
    "Exit status: that of the command's last start, or 128 + the signal that ended it; 2 if it cannot be started.";

constexpr int kWrongUsage = 2;

struct RunOptions {
  std::vector<std::string> command;
  console::RestartOptions restarts;
  double pause = 1, longest_pause = 300, steady = 600;
  bool json = false;
};

// What a line of the log has besides its text.
std::vector<LogMember> members_of(const console::Json& json) {
  std::vector<LogMember> members;
  for (const auto& [name, value] : json.items()) {
    if (value.is_number_integer()) {
      members.push_back({name, value.get<int64_t>()});
    } else if (value.is_number()) {
      members.push_back({name, value.get<double>()});
    } else if (value.is_string()) {
      members.push_back({name, value.get<std::string>()});
    } else if (!value.is_null()) {
      members.push_back({name, value.dump()});
    }
  }
  return members;
}

LogLevel level_of(const console::Json& json) {
  if (json.value("event", "") == "not started") return LogLevel::kError;
  return json.value("exit_status", 0) != 0 ? LogLevel::kWarning : LogLevel::kInfo;
}

// In the form that is asked for here, or else in that of the log, which the program's lines have as well.
void say(const RunOptions& options, const std::string& text, const console::Json& json) {
  if (!options.json && log_format() == LogFormat::kJson) {
    return write_json_line(level_of(json), "longhaul run: " + text, members_of(json));
  }
  const double now = Clock::real().wall_time();
  if (options.json) {
    console::Json line = console::json_of("run");
    line["time"] = now;
    line.update(json);
    tell(console::json_line(line));
  } else {
    tell(fmt::format("{} longhaul run: {}\n", console::utc_text(now), console::shown(text, 1000)));
  }
}

void run(RunOptions& options) {
  options.restarts.first_pause = Seconds{options.pause};
  options.restarts.longest_pause = Seconds{options.longest_pause};
  options.restarts.steady = Seconds{options.steady};
  int status = 0;
  try {
    status = console::run_restarting(
        options.command, options.restarts,
        [&options](const std::string& text, const console::Json& json) { say(options, text, json); });
  } catch (const InvalidArgumentError& error) {
    print_error(error.what());
    status = kWrongUsage;
  }
  if (status != 0) throw ExitWith{status};
}

}  // namespace

void add_run(CLI::App& program, const std::vector<std::string>& command_line) {
  const auto options = std::make_shared<RunOptions>();
  options->command = command_line;
  CLI::App* command =
      program.add_subcommand("run", "Runs a program, and starts it again after a preemption or a crash");
  command->footer(kAboutRun);
  command->add_option("--max-restarts", options->restarts.max_restarts, "How many restarts in a row")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command->add_option("--pause", options->pause, "Seconds before the first restart")
      ->check(number_between(0, 86400))
      ->capture_default_str();
  command->add_option("--longest-pause", options->longest_pause, "The pauses double, up to so many seconds")
      ->check(number_between(0, 86400))
      ->capture_default_str();
  command->add_option("--steady", options->steady, "A start that lasts so many seconds gives the budget back")
      ->check(number_between(0.001, 1e9))
      ->capture_default_str();
  command->add_flag("--json", options->json, "What happens, as lines of JSON on stderr");
  command->allow_extras();
  command->callback([command, options] {
    const std::vector<std::string> extras = command->remaining();
    if (!extras.empty()) {
      throw CLI::ValidationError(
          "longhaul run",
          fmt::format("'{}' is no option: put -- before the command: longhaul run -- ./train", extras.front()));
    }
    run(*options);
  });
}

}  // namespace longhaul::tools
