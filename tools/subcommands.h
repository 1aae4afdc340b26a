#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace longhaul::tools {

// Each adds a subcommand of the program `longhaul`: its options, and what it does as its callback, whose exceptions end
// the program with status 1 and their message. A new one has a source of its own here, and a line in longhaul.cc.
void add_certificates(CLI::App& program);
// `command` is what stands behind "--", which CLI11 does not get to see: it is another program's.
void add_resume_check(CLI::App& program, const std::vector<std::string>& command);

// Runs the program; its exit status: 0 done, 1 an error, 2 wrong usage.
int run_program(int argc, const char* const* argv);

}  // namespace longhaul::tools
