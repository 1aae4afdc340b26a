#include "longhaul/io/process/process_identity.h"

#include <fmt/format.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <optional>
#include <sstream>

#include "longhaul/base/above_stdio.h"

namespace longhaul {
namespace {

std::string first_line(const std::string& path) {
  const AboveStdio above;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string link_target(const char* path) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(path, target, sizeof(target));
  return size < 0 ? std::string() : std::string(target, static_cast<size_t>(size));
}

struct ProcessStat {
  char state;
  uint64_t start_time;
};

// proc(5): the name of the program, in brackets, may hold anything; the 3rd field behind it is the state, the 22nd the
// start time.
std::optional<ProcessStat> read_stat(int64_t pid) {
  const std::string line = first_line(fmt::format("/proc/{}/stat", pid));
  const size_t bracket = line.rfind(')');
  if (bracket == line.npos) return std::nullopt;
  std::istringstream fields(line.substr(bracket + 1));
  ProcessStat stat{};
  std::string skipped;
  fields >> stat.state;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> stat.start_time;
  return fields ? std::optional(stat) : std::nullopt;
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

}  // namespace

ProcessIdentity this_process() {
  const auto stat = read_stat(::getpid());
  return {.host = host_name(),
          .boot_id = first_line("/proc/sys/kernel/random/boot_id"),
          .pid_namespace = link_target("/proc/self/ns/pid"),
          .pid = ::getpid(),
          .start_time = stat ? stat->start_time : 0};
}

ProcessState state_of(const ProcessIdentity& process) {
  const ProcessIdentity here = this_process();
  const bool is_visible = !here.boot_id.empty() && !here.pid_namespace.empty() && here.boot_id == process.boot_id &&
                          here.pid_namespace == process.pid_namespace;
  if (!is_visible || process.pid <= 0 || process.pid > INT_MAX || process.start_time == 0)
    return ProcessState::kUnknown;
  if (const auto stat = read_stat(process.pid)) {
    const bool has_ended = stat->state == 'Z' || stat->state == 'X';
    return stat->start_time == process.start_time && !has_ended ? ProcessState::kRunning : ProcessState::kGone;
  }
  const bool is_nobody = ::kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH;
  return is_nobody ? ProcessState::kGone : ProcessState::kUnknown;
}

}  // namespace longhaul
