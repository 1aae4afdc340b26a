#include "longhaul/console/machine/helper_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "longhaul/base/above_stdio.h"

namespace longhaul::console {
namespace {

constexpr size_t kMostBytes = 65536;

// Reads until the other end is closed; false: not before the deadline.
bool read_all(int descriptor, Seconds deadline, std::string& text) {
  while (true) {
    const double left = (deadline - Clock::real().now()).count();
    pollfd ready{.fd = descriptor, .events = POLLIN, .revents = 0};
    if (left <= 0) return false;
    // wait: for the helper's output
    if (::poll(&ready, 1, static_cast<int>(std::clamp(left * 1000, 1.0, 60000.0))) <= 0) continue;
    char bytes[4096];
    const ssize_t count = ::read(descriptor, bytes, sizeof bytes);
    if (count <= 0) return true;
    if (text.size() < kMostBytes) text.append(bytes, static_cast<size_t>(count));
  }
}

}  // namespace

HelperOutput output_of(const std::string& program, Seconds time_limit) {
  int ends[2] = {-1, -1};
  {
    const AboveStdio above;
    if (::pipe2(ends, O_CLOEXEC) != 0) return {.problem = fmt::format("no pipe: {}", strerror(errno))};
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  char* arguments[] = {const_cast<char*>(program.c_str()), nullptr};
  pid_t child = 0;
  const int error = ::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  HelperOutput output;
  if (error != 0) {
    ::close(ends[0]);
    return {.problem = fmt::format("{} cannot be started: {}", program, strerror(error))};
  }
  const bool is_complete = read_all(ends[0], Clock::real().now() + time_limit, output.text);
  ::close(ends[0]);
  if (!is_complete) ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!is_complete) {
    output.problem = fmt::format("{} took more than {:g} s", program, time_limit.count());
  } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    output.problem = fmt::format("{} failed", program);
  }
  return output;
}

std::string helper_path(const std::string& name) {
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const auto& path : {self / name, self.parent_path() / "libexec" / "longhaul" / name}) {
    if (::access(path.c_str(), X_OK) == 0) return path.string();
  }
  return "";
}

}  // namespace longhaul::console
