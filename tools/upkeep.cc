// longhaul prune, pin, unpin, convert: what changes files.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <memory>

#include "longhaul/console/upkeep/conversion.h"
#include "longhaul/console/upkeep/pinning.h"
#include "longhaul/console/upkeep/pruning.h"
#include "tools/reported.h"
#include "tools/subcommands.h"

namespace longhaul::tools {
namespace {

constexpr char kAboutPrune[] =
    "  longhaul prune runs/demo                      what would be deleted: nothing is\n"
    "  longhaul prune runs/demo --keep=3 --delete    keep the newest three, and delete the others\n"
    "  longhaul prune runs/demo --keep-multiples=10000 --delete\n"
    "\n"
    "Kept are always the latest checkpoint, that which the state file names, pinned ones, ones with a metric, and "
    "ones\n"
    "without a step. The latest is read first: if it is damaged, nothing is deleted. A directory in which a training\n"
    "runs is refused: it deletes old checkpoints itself (max_to_keep). On a full disk it needs no room.\n"
    "\n"
    "Exit status: 0 done; 1 an error, and nothing or less was deleted; 2 wrong usage.";

constexpr char kAboutPin[] =
    "  longhaul pin runs/demo/model.ckpt-100      never delete it\n"
    "  longhaul pin runs/demo                     the latest one there\n"
    "  longhaul unpin runs/demo/model.ckpt-100    treat it like any other again\n"
    "\n"
    "A training that runs takes the change over with its next save.\n"
    "\n"
    "Exit status: 0 done; 1 an error; 2 wrong usage.";

constexpr char kAboutConvert[] =
    "  longhaul convert runs/demo demo.safetensors\n"
    "  longhaul convert --module runs/net net.pt          for load_state_dict() in Python\n"
    "  longhaul convert net.pt runs/start/model.ckpt-0    a checkpoint to start from\n"
    "  longhaul convert --rename='^net/(.*)$=model.$1' --only='^net/' runs/demo demo.safetensors\n"
    "\n"
    "The ending of TO decides: .safetensors, .pt and .pth are files of weights, anything else is a checkpoint. Rules "
    "are\n"
    "ECMAScript's regular expressions; the first that is found in a name changes it. The result is there whole, or "
    "not\n"
    "at all. Nothing in a file is executed.\n"
    "\n"
    "Exit status: 0 done; 1 an error, and nothing was written; 2 wrong usage.";

// A rule that is none is wrong usage.
void add_rule(console::ConversionOptions& options, const std::string& text) {
  try {
    options.rules.push_back(console::parse_name_rule(text));
  } catch (const InvalidArgumentError& error) {
    throw CLI::ValidationError("--rename", error.what());
  }
}

}  // namespace

void add_prune(CLI::App& program) {
  const auto command = std::make_shared<ReportingCommand>(
      program, "prune", "Deletes old checkpoints; without --delete, says which", kAboutPrune);
  const auto options = std::make_shared<console::PruneOptions>();
  command->app().add_option("DIR", options->directory, "A directory with checkpoints")->required();
  command->app()
      .add_option("--keep", options->keep, "Keep the newest so many of each name")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->app()
      .add_option("--keep-multiples", options->keep_multiples, "Keep those whose step is a multiple of this")
      ->check(CLI::Range(int64_t{1}, std::numeric_limits<int64_t>::max()));
  command->app().add_flag("--delete", options->deletes, "Delete them");
  command->reports([command, options] {
    return console::prune_checkpoints(FileSystem::real(), *options, command->terminal(), command->progress());
  });
}

void add_pin(CLI::App& program, bool is_pinned) {
  const auto command = std::make_shared<ReportingCommand>(
      program, is_pinned ? "pin" : "unpin",
      is_pinned ? "Keeps checkpoints from being deleted" : "Lets pinned checkpoints be deleted again", kAboutPin);
  const auto checkpoints = std::make_shared<std::vector<std::string>>();
  command->app().add_option("CKPT", *checkpoints, "Checkpoints; a directory stands for its latest")->required();
  command->reports(
      [checkpoints, is_pinned] { return console::pin_checkpoints(FileSystem::real(), *checkpoints, is_pinned); });
}

void add_convert(CLI::App& program) {
  const auto command = std::make_shared<ReportingCommand>(
      program, "convert", "Copies tensors to another format, or under other names", kAboutConvert);
  const auto options = std::make_shared<console::ConversionOptions>();
  const auto rules = std::make_shared<std::vector<std::string>>();
  command->app()
      .add_option("FROM", options->from, "A checkpoint, a directory (its latest), a file of weights")
      ->required();
  command->app().add_option("TO", options->to, "A file of weights, or the prefix of a checkpoint")->required();
  command->app()
      .add_option("--rename", *rules, "PATTERN=REPLACEMENT; may be there several times")
      ->allow_extra_args(false);
  command->app().add_option("--only", options->only, "Leave out names in which this pattern is not found");
  command->app().add_flag("--module", options->module_only, "Of a checkpoint, only the libtorch module's tensors");
  command->app().add_flag("--skip-unsupported", options->skips_unsupported, "Leave out dtypes that TO's format lacks");
  command->app().add_flag("--replace", options->replaces, "Replace TO if it exists");
  command->reports([command, options, rules] {
    for (const std::string& rule : *rules) add_rule(*options, rule);
    try {
      console::check_conversion(*options);
    } catch (const InvalidArgumentError& error) {
      throw CLI::ValidationError("longhaul convert", error.what());
    }
    return console::convert_tensors(FileSystem::real(), *options, command->terminal());
  });
}

}  // namespace longhaul::tools
