// longhaul_bench [FILTER] [--json]: how fast is Longhaul, beside its peers and the machine's own limits?
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "benchmarks/benchmarks.h"

namespace {

using longhaul::bench::Row;

struct Arguments {
  std::string filter;
  bool json = false;
};

// False for an argument that there is not.
bool parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--json") {
      arguments.json = true;
    } else if (argument.starts_with("-") || !arguments.filter.empty()) {
      fmt::print(stderr, "longhaul_bench: unknown argument {}\nusage: longhaul_bench [FILTER] [--json]\n", argument);
      return false;
    } else {
      arguments.filter = argument;
    }
  }
  return true;
}

// False when the row could not be measured.
bool print_row(const Row& row, bool json) {
  try {
    const auto result = longhaul::bench::measure(row);
    fmt::print("{}\n", json ? json_line(result) : table_line(result));
    std::fflush(stdout);
    return true;
  } catch (const std::exception& error) {
    fmt::print(json ? stderr : stdout, "{:<34} not measured: {}\n", row.name, error.what());
    return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  setenv("LONGHAUL_LOG_LEVEL", "warning", /*overwrite=*/0);  // what is printed is a table
  Arguments arguments;
  if (!parse(argc, argv, arguments)) return 2;

  std::vector<Row> rows = longhaul::bench::all_rows();
  std::erase_if(rows, [&](const Row& row) { return row.name.find(arguments.filter) == std::string::npos; });
  if (rows.empty()) {
    fmt::print(stderr, "longhaul_bench: no row's name contains '{}'\n", arguments.filter);
    return 2;
  }
  if (!arguments.json) fmt::print("{}\n", longhaul::bench::table_head());
  bool all_measured = true;
  for (const Row& row : rows) all_measured &= print_row(row, arguments.json);
  return all_measured ? 0 : 1;
}
