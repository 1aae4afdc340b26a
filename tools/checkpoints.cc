// longhaul ls, show, verify, diff: what is in checkpoints and in files of weights.

#include <CLI/CLI.hpp>
#include <limits>
#include <memory>

#include "longhaul/base/clock.h"
#include "longhaul/console/checkpoints/checkpoint_check.h"
#include "longhaul/console/checkpoints/checkpoint_contents.h"
#include "longhaul/console/checkpoints/checkpoint_differences.h"
#include "longhaul/console/checkpoints/checkpoint_listing.h"
#include "tools/reported.h"
#include "tools/subcommands.h"

namespace longhaul::tools {
namespace {

constexpr char kAboutLs[] =
    "  longhaul ls                    the checkpoints of this directory\n"
    "  longhaul ls runs/a runs/b      of two\n"
    "  longhaul ls --json runs/a      for a program\n"
    "\n"
    "\"latest\" is what a restart takes first. \"set aside\" was found damaged, and is no checkpoint any more.\n"
    "\n"
    "Exit status: 0 done; 1 an error; 2 wrong usage.";

constexpr char kAboutShow[] =
    "  longhaul show runs/demo                      the names of the latest checkpoint there\n"
    "  longhaul show runs/demo/model.ckpt-100 w     a tensor: statistics and a histogram\n"
    "  longhaul show --values runs/demo '*/w'       statistics of all that have such a name\n"
    "  longhaul show net.safetensors                a file of weights; also net.pt\n"
    "\n"
    "Nothing in a file is executed, and nothing is written. Values are read a megabyte at a time.\n"
    "\n"
    "Exit status: 0 done; 1 an error, such as damage; 2 wrong usage.";

constexpr char kAboutVerify[] =
    "  longhaul verify runs/demo              the latest checkpoint, all of its bytes\n"
    "  longhaul verify --all runs/demo        every checkpoint there\n"
    "  longhaul verify backup/model.ckpt-100 && rm -r runs/demo\n"
    "\n"
    "Compares checksums, with bounded memory, at the speed of the disk. A safetensors file has none: only its\n"
    "form is checked. Checkpoints that a training deletes meanwhile are no error.\n"
    "\n"
    "Exit status: 0 all intact; 1 one is damaged, or cannot be read; 2 wrong usage.";

constexpr char kAboutDiff[] =
    "  longhaul diff runs/a runs/b                          the latest checkpoints of both\n"
    "  longhaul diff runs/a/model.ckpt-1 runs/a/model.ckpt-2\n"
    "  longhaul diff --tolerance=1e-6 runs/a a.safetensors  whether an export is the same\n"
    "\n"
    "Without --tolerance, bits are compared: a NaN equals the same NaN, 0 does not equal -0.\n"
    "\n"
    "Exit status: 0 the same; 1 they differ, or an error; 2 wrong usage.";

constexpr char kAPath[] = "A checkpoint, a directory (its latest checkpoint), or a file of weights";

}  // namespace

void add_ls(CLI::App& program) {
  const auto command = std::make_shared<ReportingCommand>(program, "ls", "Lists checkpoints", kAboutLs);
  const auto directories = std::make_shared<std::vector<std::string>>(1, ".");
  command->app().add_option("DIR", *directories, "Directories; without one, this");
  command->reports([command, directories] {
    return console::list_checkpoints(FileSystem::real(), *directories, Clock::real().wall_time(), command->terminal());
  });
}

void add_show(CLI::App& program) {
  const auto command =
      std::make_shared<ReportingCommand>(program, "show", "Shows the tensors of a checkpoint", kAboutShow);
  const auto options = std::make_shared<console::ContentsOptions>();
  command->app().add_option("CKPT", options->path, kAPath)->required();
  command->app().add_option("NAME", options->name, "A tensor's name, or a pattern with * ? [...] for several");
  command->app().add_flag("--values", options->with_statistics, "Read the values of all that are listed");
  command->reports([command, options] {
    return console::show_contents(FileSystem::real(), *options, command->terminal(), command->progress());
  });
}

void add_verify(CLI::App& program) {
  const auto command =
      std::make_shared<ReportingCommand>(program, "verify", "Checks that checkpoints are intact", kAboutVerify);
  const auto options = std::make_shared<console::CheckOptions>();
  command->app().add_option("PATH", options->paths, kAPath)->required();
  command->app().add_flag("--all", options->all, "All checkpoints of a directory");
  command->reports([command, options] {
    return console::check_checkpoints(FileSystem::real(), *options, command->terminal(), command->progress());
  });
}

void add_diff(CLI::App& program) {
  const auto command = std::make_shared<ReportingCommand>(program, "diff", "Compares two checkpoints", kAboutDiff);
  const auto options = std::make_shared<console::DifferencesOptions>();
  command->app().add_option("A", options->a, kAPath)->required();
  command->app().add_option("B", options->b, "The same")->required();
  command->app()
      .add_option("--tolerance", options->tolerance, "Numbers that are no farther apart are equal")
      ->check(number_between(0, std::numeric_limits<double>::max()));
  command->app().add_flag("--equal", options->with_equal, "List equal tensors too");
  command->reports([command, options] {
    return console::compare_contents(FileSystem::real(), *options, command->terminal(), command->progress());
  });
}

}  // namespace longhaul::tools
