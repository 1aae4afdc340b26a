// longhaul resume-check: whether a training program resumes to the same bytes.

#include "longhaul/resume_check/resume_check.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>

#include "longhaul/resume_check/waited_signals.h"
#include "tools/reported.h"
#include "tools/subcommands.h"

namespace longhaul::tools {
namespace {

constexpr char kAboutResumeCheck[] =
    "Runs a training program undisturbed, killed at random moments, and stopped by SIGTERM, and\n"
    "compares the newest checkpoints of the three runs tensor by tensor.\n"
    "\n"
    "  longhaul resume-check -- ./train --logdir={} --steps=2000\n"
    "  longhaul resume-check --kills=5 --seed=7 --keep=runs/check -- ./train --logdir={}\n"
    "  longhaul resume-check -- sh -c './train \"$LONGHAUL_RESUME_CHECK_DIR\"'\n"
    "\n"
    "{} in the command stands for the directory of each run. A program without such an argument must\n"
    "use the environment variable LONGHAUL_RESUME_CHECK_DIR: in its usual directory it would go on\n"
    "with what is there. A Trainer uses it by itself. The command runs three to four times, so let it\n"
    "train for seconds to minutes, and save several times meanwhile. It should end with status 0, and after\n"
    "SIGTERM with any; 75 asks for another start.\n"
    "\n"
    "Not compared are all files other than the tensors' (journal, events, times, the record of the\n"
    "environment in .meta), and the settings with which a process began (longhaul/conditions and\n"
    "longhaul/optimizer), which are named if they differ.\n"
    "\n"
    "Exit status: 0 the same bytes; 1 they differ, a run failed, or nothing was shown; 2 wrong usage, or no\n"
    "checkpoint was written.";

struct CommandOptions {
  ResumeCheckOptions check;
  double timeout_minutes = 10;
};

void print_line(const std::string& line) {
  print(line + "\n");
}

[[noreturn]] void end_by(int signal) {
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  ::_exit(128 + signal);
}

void check(CommandOptions options) {
  options.check.time_limit = Seconds{60 * options.timeout_minutes};
  options.check.say = print_line;
  print_line(fmt::format("the moments are those of --seed={}", options.check.seed));
  ResumeCheckResult result;
  try {
    result = check_resume(options.check);
  } catch (const InvalidArgumentError& error) {
    throw CLI::ValidationError("longhaul resume-check", error.what());
  } catch (const InterruptedError& error) {
    end_by(error.signal());
  }
  print(result.text);
  if (!result.is_same) {
    throw std::runtime_error(
        fmt::format("resumed runs end with other bytes; to see all files: --seed={} --keep=DIR", options.check.seed));
  }
}

}  // namespace

void add_resume_check(CLI::App& program, const std::vector<std::string>& command_line) {
  const auto options = std::make_shared<CommandOptions>();
  options->check.command = command_line;
  options->check.seed = std::random_device{}();
  CLI::App* command =
      program.add_subcommand("resume-check", "Shows whether a training program resumes to the same bytes");
  command->footer(kAboutResumeCheck);
  command->add_option("--kills", options->check.kills, "How often SIGKILL ends a run; 0: no such run")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command->add_option("--stops", options->check.stops, "How often SIGTERM stops a run; 0: no such run")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command->add_option("--seed", options->check.seed, "For the moments: the same again; printed, and else random");
  command->add_option("--timeout", options->timeout_minutes, "Minutes that each run may take, with all of its starts")
      ->check(number_between(0.001, 1e6))
      ->capture_default_str();
  command
      ->add_option("--epoch-steps", options->check.epoch_steps,
                   "Steps of an epoch, so that SIGTERM comes at the end of one; a Trainer's checkpoints tell them")
      ->check(CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max()));
  command->add_option("--keep", options->check.keep,
                      "Leaves the runs' directories and outputs (*.log) here: a new or empty directory. Else they are "
                      "in a temporary one (TMPDIR), which is removed");
  command->allow_extras();
  command->callback([command, options] {
    const std::vector<std::string> extras = command->remaining();
    if (!extras.empty()) {
      throw CLI::ValidationError("longhaul resume-check",
                                 fmt::format("'{}' is no option: put -- before the command: longhaul resume-check -- "
                                             "./train --logdir={{}}",
                                             extras.front()));
    }
    check(*options);
  });
}

}  // namespace longhaul::tools
