// longhaul doctor: what this machine can do.

#include <CLI/CLI.hpp>
#include <iterator>
#include <memory>

#include "longhaul/base/clock.h"
#include "longhaul/console/machine/helper_output.h"
#include "longhaul/console/machine/machine_check.h"
#include "tools/reported.h"
#include "tools/subcommands.h"

namespace longhaul::tools {
namespace {

constexpr char kAboutDoctor[] =
    "  longhaul doctor                    the kernel, the limits, libtorch\n"
    "  longhaul doctor runs               and the directory for a training\n"
    "  longhaul doctor --probe runs       and try locks, links and the disk's speed there\n"
    "\n"
    "\"note\" works, but slower or with less; \"bad\" costs work. Without --probe nothing is written; with it, a file "
    "of\n"
    "64 MB, which is removed.\n"
    "\n"
    "Exit status: 0 nothing is bad; 1 something is, or an error; 2 wrong usage.";

constexpr char kHelper[] = "longhaul-torch";
constexpr Seconds kLongestStart{60};  // of libtorch from a slow disk

void append(std::vector<console::MachineFinding>& all, std::vector<console::MachineFinding> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

std::vector<console::MachineFinding> ask_torch() {
  const std::string path = console::helper_path(kHelper);
  if (path.empty()) return console::torch_findings("", std::string("the program ") + kHelper + " is not installed");
  const console::HelperOutput output = console::output_of(path, kLongestStart);
  return console::torch_findings(output.text, output.problem);
}

}  // namespace

void add_doctor(CLI::App& program) {
  const auto command = std::make_shared<ReportingCommand>(program, "doctor",
                                                          "Says what this machine can do, with remedies", kAboutDoctor);
  const auto directory = std::make_shared<std::string>();
  const auto probes = std::make_shared<bool>(false);
  CLI::Option* option = command->app().add_option("DIR", *directory, "A directory for trainings");
  command->app().add_flag("--probe", *probes, "Write into DIR to try it")->needs(option);
  command->reports([command, directory, probes] {
    std::vector<console::MachineFinding> all = console::machine_findings();
    if (!directory->empty()) {
      append(all, console::directory_findings(FileSystem::real(), *directory, *probes));
    }
    append(all, ask_torch());
    return console::report_machine(all, command->terminal());
  });
}

}  // namespace longhaul::tools
