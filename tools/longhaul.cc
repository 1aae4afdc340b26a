// The program `longhaul`: what is done beside a training, a subcommand each.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

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

}  // namespace

int run_program(int argc, const char* const* argv) {
  CLI::App program("Does what is done beside a training with Longhaul. Exit status: 0 done; 1 an error; 2 wrong usage.",
                   "longhaul");
  program.require_subcommand(1);
  for (const auto add : {add_certificates}) add(program);
  return parse_and_run(program, argc, argv);
}

}  // namespace longhaul::tools

int main(int argc, char** argv) {
  return longhaul::tools::run_program(argc, argv);
}
