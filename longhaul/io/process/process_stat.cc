#include "longhaul/io/process/process_stat.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <string>

#include "longhaul/base/above_stdio.h"

namespace longhaul {

// The name of the program, in brackets, may hold anything; the 3rd field behind it is the state, the 22nd the start
// time.
std::optional<ProcessStat> process_stat(int64_t pid) {
  const AboveStdio above;
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
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

bool is_held(const ProcessStat& stat) {
  return stat.state == 'T' || stat.state == 't';
}

}  // namespace longhaul
