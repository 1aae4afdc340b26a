#pragma once

namespace CLI {
class App;
}

namespace longhaul::tools {

// Each adds a subcommand of the program `longhaul`: its options, and what it does as its callback, whose exceptions end
// the program with status 1 and their message. A new one has a source of its own here, and a line in longhaul.cc.
void add_certificates(CLI::App& program);

// Runs the program; its exit status: 0 done, 1 an error, 2 wrong usage.
int run_program(int argc, const char* const* argv);

}  // namespace longhaul::tools
