#include "longhaul/io/process/process_identity.h"

#include <fmt/format.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <optional>

#include "longhaul/base/above_stdio.h"
#include "longhaul/io/process/process_stat.h"

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

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

}  // namespace

ProcessIdentity this_process() {
  const auto stat = process_stat(::getpid());
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
  if (const auto stat = process_stat(process.pid)) {
    const bool has_ended = stat->state == 'Z' || stat->state == 'X';
    return stat->start_time == process.start_time && !has_ended ? ProcessState::kRunning : ProcessState::kGone;
  }
  const bool is_nobody = ::kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH;
  return is_nobody ? ProcessState::kGone : ProcessState::kUnknown;
}

}  // namespace longhaul
