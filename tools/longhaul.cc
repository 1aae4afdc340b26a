// The program `longhaul`: what is done with a training from outside, a subcommand each.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/excerpt.h"
#include "longhaul/base/nearest_name.h"
#include "tools/reported.h"
#include "tools/subcommands.h"

namespace longhaul::tools {
namespace {

// So that stdout is valid whatever happens.
void print_as_json(const CLI::App& program, const CLI::ParseError& error) {
  const auto commands = program.get_subcommands();
  console::Json json = console::json_of(commands.empty() ? "" : commands.front()->get_name().c_str());
  json["error"] = error.what();
  print(console::json_text(json));
}

// After --help, --version, and wrong usage.
int end_of_parsing(const CLI::App& program, const CLI::ParseError& error, bool wants_json) {
  std::ostringstream out, err;
  const bool is_fine = program.exit(error, out, err) == 0;
  tell(err.str());
  if (is_fine && out.str().empty()) return 0;
  try {
    if (!is_fine && wants_json) print_as_json(program, error);
    print(out.str());
  } catch (const std::exception& of_stdout) {
    print_error(of_stdout.what());
    return is_fine ? 1 : 2;
  }
  return is_fine ? 0 : 2;
}

void check_command(const CLI::App& program, const std::string& name) {
  if (name.empty() || name.starts_with('-')) return;
  std::vector<std::string> names;
  for (const CLI::App* const command : program.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  throw CLI::ParseError("there is no command \"" + excerpt(name) + "\"" + nearest_name_hint(name, names), 2);
}

int parse_and_run(CLI::App& program, int argc, const char* const* argv) {
  const bool wants_json = std::find(argv, argv + argc, std::string_view("--json")) != argv + argc;
  try {
    check_command(program, argc > 1 ? argv[1] : "");
    program.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return end_of_parsing(program, error, wants_json);
  } catch (const ExitWith& end) {
    return end.status;
  } catch (const std::exception& error) {
    print_error(error.what());
    return 1;
  }
}

// Whether what follows "--" is a command of the user's.
bool has_command(int argc, const char* const* argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  return name == "resume-check" || name == "run";
}

const char* const* find_dashes(int argc, const char* const* argv) {
  return std::find(argv, argv + argc, std::string_view("--"));
}

}  // namespace

int run_program(int argc, const char* const* argv) {
  CLI::App program(
      "Looks at trainings with Longhaul, and does what is done to them from outside.\nExit status: 0 done; 1 an error, "
      "or something is wrong; 2 wrong usage.",
      "longhaul");
  program.require_subcommand(1);
  program.set_version_flag("--version", std::string("longhaul ") + LONGHAUL_VERSION);
  const char* const* const dashes = has_command(argc, argv) ? find_dashes(argc, argv) : argv + argc;
  const std::vector<std::string> command(std::min(dashes + 1, argv + argc), argv + argc);
  add_status(program);
  add_runs(program);
  add_run(program, command);
  add_events(program);
  add_board(program);
  add_ls(program);
  add_show(program);
  add_verify(program);
  add_diff(program);
  add_prune(program);
  add_pin(program, true);
  add_pin(program, false);
  add_convert(program);
  add_doctor(program);
  add_certificates(program);
  add_resume_check(program, command);
  add_completion(program);
  add_man(program);
  return parse_and_run(program, static_cast<int>(dashes - argv), argv);
}

}  // namespace longhaul::tools

int main(int argc, char** argv) {
  return longhaul::tools::run_program(argc, argv);
}
