// The program `longhaul`: what is done beside a training, a subcommand each.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "tools/subcommands.h"

namespace longhaul::tools {
namespace {

int parse_and_run(CLI::App& program, int argc, const char* const* argv) {
  try {
    program.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "longhaul: %s\n", error.what());
    return 1;
  }
}

// Whether what follows "--" is a command of the user's.
bool has_command(int argc, const char* const* argv) {
  return argc > 1 && std::string_view(argv[1]) == "resume-check";
}

const char* const* find_dashes(int argc, const char* const* argv) {
  return std::find(argv, argv + argc, std::string_view("--"));
}

}  // namespace

int run_program(int argc, const char* const* argv) {
  CLI::App program("Does what is done beside a training with Longhaul. Exit status: 0 done; 1 an error; 2 wrong usage.",
                   "longhaul");
  program.require_subcommand(1);
  const char* const* const dashes = has_command(argc, argv) ? find_dashes(argc, argv) : argv + argc;
  add_certificates(program);
  add_resume_check(program, {std::min(dashes + 1, argv + argc), argv + argc});
  return parse_and_run(program, static_cast<int>(dashes - argv), argv);
}

}  // namespace longhaul::tools

int main(int argc, char** argv) {
  return longhaul::tools::run_program(argc, argv);
}
