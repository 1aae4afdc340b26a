// longhaul status, runs: how trainings stand, and how they went.

#include <CLI/CLI.hpp>
#include <memory>

#include "longhaul/base/clock.h"
#include "longhaul/console/trainings/run_listing.h"
#include "longhaul/console/trainings/training_status.h"
#include "tools/reported.h"
#include "tools/subcommands.h"

namespace longhaul::tools {
namespace {

constexpr char kAboutStatus[] =
    "  longhaul status                     the training in this directory\n"
    "  longhaul status runs/*              all of them\n"
    "  longhaul status runs/* || mail -s 'a training needs you' me\n"
    "  watch -n 5 longhaul status runs/demo\n"
    "  longhaul status --json runs/* | jq '.directories[] | {path, step, problems}'\n"
    "\n"
    "Looks at the files alone: on any machine that sees the directory, also while nothing runs there. \"wrong\" says\n"
    "what is wrong and what to do: a chief that is dead or silent, no step or checkpoint for too long, runs that "
    "fail,\n"
    "damaged checkpoints, a full disk. Nothing is written.\n"
    "\n"
    "Exit status: 0 fine; 1 something is wrong; 2 wrong usage.";

constexpr char kAboutRuns[] =
    "  longhaul runs runs/demo             each start, its steps, and why it ended\n"
    "  longhaul runs --last=5 runs/demo    the last five\n"
    "\n"
    "\"killed\" is a run without an end: by kill -9, the kernel's OOM killer, a power cut. \"died\": by a fatal signal "
    "of\n"
    "its own. \"disturbed\": by an error that another start may not meet, such as a full disk. Lost steps are those "
    "that\n"
    "the next run made again. Times are UTC.\n"
    "\n"
    "Exit status: 0 done; 1 an error; 2 wrong usage.";

}  // namespace

void add_status(CLI::App& program) {
  const auto command = std::make_shared<ReportingCommand>(
      program, "status", "Shows how trainings stand, and what is wrong with them", kAboutStatus);
  const auto directories = std::make_shared<std::vector<std::string>>(1, ".");
  command->app().add_option("DIR", *directories, "Directories of trainings; without one, this");
  command->reports([command, directories] {
    return console::show_status(FileSystem::real(), *directories, Clock::real().wall_time(), command->terminal());
  });
}

void add_runs(CLI::App& program) {
  const auto command = std::make_shared<ReportingCommand>(
      program, "runs", "Lists the starts of a training: their steps, and why they ended", kAboutRuns);
  const auto options = std::make_shared<console::RunListingOptions>();
  options->directory = ".";
  command->app().add_option("DIR", options->directory, "The directory of the training; without one, this");
  command->app().add_option("--last", options->last, "How many are listed")->capture_default_str();
  command->reports([command, options] {
    return console::list_runs(FileSystem::real(), *options, Clock::real().wall_time(), command->terminal());
  });
}

}  // namespace longhaul::tools
