// longhaul events: the values in event files.

#include <CLI/CLI.hpp>
#include <memory>

#include "longhaul/base/clock.h"
#include "longhaul/console/events/event_listing.h"
#include "tools/reported.h"
#include "tools/subcommands.h"

namespace longhaul::tools {
namespace {

constexpr char kAboutEvents[] =
    "  longhaul events runs/demo                    the tags, with their last values\n"
    "  longhaul events runs/demo --tag=loss         the last 20 values\n"
    "  longhaul events runs/demo --tag=loss --plot  a plot in the terminal\n"
    "  longhaul events runs/demo --tag='val*' --follow\n"
    "\n"
    "Also for files of TensorFlow and PyTorch. After a restart, values of steps that were made again replace the\n"
    "earlier ones. --follow prints new scalars until Ctrl-C. Times are UTC.\n"
    "\n"
    "Exit status: 0 done; 1 an error, or a damaged file; 2 wrong usage.";

}  // namespace

void add_events(CLI::App& program) {
  const auto command =
      std::make_shared<ReportingCommand>(program, "events", "Shows values of event files", kAboutEvents);
  const auto options = std::make_shared<console::EventListingOptions>();
  const auto follow = std::make_shared<bool>(false);
  options->path = ".";
  command->app().add_option("PATH", options->path, "A directory, or an event file; without one, this directory");
  command->app().add_option("--tag", options->tag, "A tag, or a pattern with * ? [...]");
  CLI::Option* plot = command->app().add_flag("--plot", options->plots, "Draw scalars instead of listing them");
  command->app().add_option("--last", options->last, "How many values of a tag are listed")->capture_default_str();
  command->app().add_flag("--follow", *follow, "Print new scalars as they come")->excludes(plot);
  command->reports([command, options, follow] {
    if (*follow) {
      console::follow_events(FileSystem::real(), options->path, options->tag,
                             [&](const std::string& text, const console::Json& json) {
                               print(command->wants_json() ? console::json_line(json) : text + "\n");
                               return true;
                             });
    }
    return console::list_events(FileSystem::real(), *options, Clock::real().wall_time(), command->terminal());
  });
}

}  // namespace longhaul::tools
