#include "longhaul/console/restarts/child_program.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <memory>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/error.h"
#include "longhaul/console/text/kernel_text.h"
#include "longhaul/io/files/file.h"
#include "longhaul/io/process/child_signals.h"

namespace longhaul::console {
namespace {

constexpr Seconds kLongestDeath{30};  // of killed processes that hold much memory, or wait for a disk
constexpr Seconds kBetweenLooks{1};   // at children that others may just have left behind

// All that the child needs, made before it exists: between fork and exec it may call little.
struct Exec {
  std::vector<char*> arguments;
  int failure;  // where the error number goes
  pid_t parent;
  sigset_t mask;
};

[[noreturn]] void become(const Exec& exec) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != exec.parent) _exit(127);  // it died before the line above
  pthread_sigmask(SIG_SETMASK, &exec.mask, nullptr);
  execvp(exec.arguments[0], exec.arguments.data());
  const int error = errno;
  static_cast<void>(!::write(exec.failure, &error, sizeof error));
  _exit(127);
}

ProgramEnd to_end(int status) {
  if (WIFSIGNALED(status)) return {.signal = WTERMSIG(status)};
  return {.status = WEXITSTATUS(status)};
}

// The parent of that process, of "PID (NAME) STATE PARENT ..."; 0: there is no such process.
pid_t parent_of(const std::string& pid) {
  const std::string stat = kernel_text("/proc/" + pid + "/stat", 4096);
  const size_t name_end = stat.rfind(") ");
  pid_t parent = 0;
  if (name_end != stat.npos && name_end + 4 < stat.size()) {
    std::from_chars(stat.data() + name_end + 4, stat.data() + stat.size(), parent);
  }
  return parent;
}

}  // namespace

ChildProgram::ChildProgram(const ForwardedSignals& signals, const std::vector<std::string>& command) {
  if (command.empty()) throw InvalidArgumentError("no command is given to start");
  int ends[2] = {-1, -1};
  {
    const AboveStdio above;
    if (pipe2(ends, O_CLOEXEC) != 0) throw_errno(errno, "make a pipe to a program that is started");
  }
  Exec exec{{}, ends[1], getpid(), signals.mask_before()};
  for (const std::string& word : command) exec.arguments.push_back(const_cast<char*>(word.c_str()));
  exec.arguments.push_back(nullptr);
  pid_ = fork();
  const int fork_error = errno;
  if (pid_ == 0) become(exec);
  ::close(ends[1]);
  const int error = pid_ < 0 ? fork_error : exec_error(ends[0]);
  ::close(ends[0]);
  if (pid_ > 0 && error != 0) waitpid(pid_, nullptr, 0);
  if (error != 0) throw_errno(error, command[0] + " cannot be started");
}

void ChildProgram::send(int signal) const {
  if (!end_) ::kill(pid_, signal);  // else the number may be another's by now
}

std::optional<ProgramEnd> ChildProgram::reap() {
  int status = 0;
  for (pid_t ended = waitpid(-1, &status, WNOHANG); ended > 0; ended = waitpid(-1, &status, WNOHANG)) {
    if (ended == pid_) end_ = to_end(status);
  }
  return end_;
}

std::vector<pid_t> children_of_this_process() {
  std::vector<pid_t> children;
  const pid_t self = getpid();
  for (const std::string& name : FileSystem::real().list("/proc")) {
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc{} || end != name.data() + name.size()) continue;
    if (parent_of(name) == self) children.push_back(pid);
  }
  return children;
}

void end_leftovers(const ForwardedSignals& signals, Seconds grace,
                   const std::function<void(const ReceivedSignal&)>& on_signal) {
  const Seconds began = Clock::real().now();
  const auto reap_all = [] {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    return waitpid(-1, nullptr, WNOHANG) < 0;  // there are no children
  };
  const auto send_all = [](int signal) {
    for (const pid_t child : children_of_this_process()) ::kill(child, signal);
  };
  if (reap_all()) return;
  send_all(SIGTERM);
  while (!reap_all()) {
    const Seconds passed = Clock::real().now() - began;
    if (passed >= grace + kLongestDeath) return;
    if (passed >= grace) send_all(SIGKILL);
    const Seconds next = passed < grace ? grace - passed : kBetweenLooks;
    if (const auto signal = signals.wait(next)) on_signal(*signal);
  }
}

}  // namespace longhaul::console
