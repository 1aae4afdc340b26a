#include "longhaul/io/process/process_stat.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include "longhaul/base/above_stdio.h"

namespace longhaul {

namespace {

// The name of the program, in brackets, may hold anything; the 3rd field behind it is the state, the 22nd the start
// time.
std::optional<ProcessStat> stat_in(const std::string& path) {
  const AboveStdio above;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const size_t bracket = line.rfind(')');
  if (bracket == line.npos) return std::nullopt;
  std::istringstream fields(line.substr(bracket + 1));
  ProcessStat stat;
  std::string skipped;
  fields >> stat.state;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> stat.start_time;
  return fields ? std::optional(stat) : std::nullopt;
}

}  // namespace

std::optional<ProcessStat> process_stat(int64_t pid) {
  return stat_in(fmt::format("/proc/{}/stat", pid));
}

bool is_held(int64_t pid, const std::string& proc) {
  const AboveStdio above;
  std::error_code error;
  std::filesystem::directory_iterator threads(fmt::format("{}/{}/task", proc, pid), error);
  bool has_any = false;
  for (; !error && threads != end(threads); threads.increment(error)) {
    const std::optional<ProcessStat> stat = stat_in((threads->path() / "stat").string());
    if (!stat) continue;  // it has ended meanwhile
    if (stat->state != 'T' && stat->state != 't') return false;
    has_any = true;
  }
  return has_any && !error;
}

}  // namespace longhaul
