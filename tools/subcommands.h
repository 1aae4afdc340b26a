#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace longhaul::tools {

// Each adds a subcommand of the program `longhaul`: its options, and what it does as its callback, whose exceptions end
// the program with status 1 and their message. A new one has a source of its own here, and a line in longhaul.cc.
void add_status(CLI::App& program);
void add_runs(CLI::App& program);
void add_events(CLI::App& program);
void add_board(CLI::App& program);
void add_ls(CLI::App& program);
void add_show(CLI::App& program);
void add_verify(CLI::App& program);
void add_diff(CLI::App& program);
void add_prune(CLI::App& program);
void add_pin(CLI::App& program, bool is_pinned);  // pin, or unpin
void add_convert(CLI::App& program);
void add_doctor(CLI::App& program);
void add_certificates(CLI::App& program);
void add_completion(CLI::App& program);
void add_man(CLI::App& program);
// `command` is what stands behind "--", which CLI11 does not get to see: it is another program's.
void add_run(CLI::App& program, const std::vector<std::string>& command);
void add_resume_check(CLI::App& program, const std::vector<std::string>& command);

// Runs the program; its exit status: 0 done, 1 an error, 2 wrong usage.
int run_program(int argc, const char* const* argv);

}  // namespace longhaul::tools
