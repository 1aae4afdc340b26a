#include "longhaul/resume_check/started_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"
#include "longhaul/io/process/child_signals.h"

namespace longhaul {
namespace {

constexpr Seconds kLongestDeath{30};  // of killed processes that hold much memory, or wait for a disk

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// The first of two variables with one name counts.
std::vector<std::string> environment_with(const std::vector<std::string>& more) {
  std::vector<std::string> all = more;
  for (char** variable = environ; *variable != nullptr; ++variable) all.emplace_back(*variable);
  return all;
}

class Descriptor {
 public:
  Descriptor(int fd, const std::string& what) : fd_(fd) {
    if (fd < 0) throw_errno(errno, what);
  }
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

int open_file(const std::string& path, int flags) {
  const AboveStdio above;
  return ::open(path.c_str(), flags | O_CLOEXEC, 0644);
}

// All that the child needs, made before it exists: between fork and exec it may call little.
struct Exec {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  int input;
  int output;
  int failure;  // where the error number goes
  pid_t parent;
  sigset_t mask;
};

void have_signals_by_default() {
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2}) {
    ::signal(signal, SIG_DFL);
  }
}

void use_as_stdio(const Exec& exec) {
  const AboveStdio above;
  if (dup2(exec.input, 0) != 0 || dup2(exec.output, 1) != 1 || dup2(exec.output, 2) != 2) _exit(127);
}

[[noreturn]] void become(const Exec& exec) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != exec.parent) _exit(127);  // it died before the line above
  have_signals_by_default();
  pthread_sigmask(SIG_SETMASK, &exec.mask, nullptr);
  use_as_stdio(exec);
  execvpe(exec.arguments[0], exec.arguments.data(), exec.environment.data());
  const int error = errno;
  static_cast<void>(!::write(exec.failure, &error, sizeof error));
  _exit(127);
}

}  // namespace

std::string ProgramEnd::to_string() const {
  return signal == 0 ? fmt::format("exit status {}", status) : fmt::format("signal {} ({})", signal, strsignal(signal));
}

StartedProgram::StartedProgram(const WaitedSignals& signals, const ProgramToStart& program) : signals_(signals) {
  if (program.command.empty()) throw InvalidArgumentError("no command is given to start");
  const std::vector<std::string> environment = environment_with(program.environment);
  const Descriptor input(open_file("/dev/null", O_RDONLY), "open /dev/null");
  const Descriptor output(open_file(program.output_path, O_WRONLY | O_CREAT | O_APPEND), "open " + program.output_path);
  int ends[2] = {-1, -1};
  {
    const AboveStdio above;
    if (pipe2(ends, O_CLOEXEC) != 0) throw_errno(errno, "make a pipe to a program that is started");
  }
  const Descriptor from_child(ends[0], "pipe");
  Descriptor to_parent(ends[1], "pipe");
  const Exec exec{
      pointers_to(program.command), pointers_to(environment), input.get(), output.get(), to_parent.get(), getpid(),
      signals.mask_before()};
  pid_ = fork();
  if (pid_ < 0) throw_errno(errno, "fork for " + program.command[0]);
  if (pid_ == 0) become(exec);
  setpgid(pid_, pid_);  // here too: a signal may be sent before the child has come so far
  to_parent.close();
  if (const int error = exec_error(from_child.get()); error != 0) {
    waitpid(pid_, nullptr, 0);
    throw InvalidArgumentError(fmt::format("{} cannot be started: {}", program.command[0], strerror(error)));
  }
}

StartedProgram::~StartedProgram() {
  if (end_) return;
  send(SIGKILL);
  kill_group_of_ended();
}

void StartedProgram::send(int signal) const {
  if (!end_) kill(-pid_, signal);  // else the number may be another's by now
}

std::optional<ProgramEnd> StartedProgram::wait_until(Seconds deadline) {
  while (!end_) {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_) {
      kill_group_of_ended();
      break;
    }
    const Seconds left = deadline - Clock::real().now();
    if (left.count() <= 0) break;
    signals_.wait(left);
  }
  return end_;
}

// The program is still a zombie when its group is killed, so that the number of the group is its own.
void StartedProgram::kill_group_of_ended() {
  send(SIGKILL);
  const Seconds deadline = Clock::real().now() + kLongestDeath;
  while (Clock::real().now() < deadline) {
    int status = 0;
    const pid_t ended = waitpid(-pid_, &status, WNOHANG);
    if (ended < 0) break;  // nothing is left of the group
    if (ended == pid_ && WIFEXITED(status)) end_ = {.status = WEXITSTATUS(status)};
    if (ended == pid_ && WIFSIGNALED(status)) end_ = {.signal = WTERMSIG(status)};
    const timespec moment{0, 2'000'000};
    if (ended == 0) nanosleep(&moment, nullptr);  // wait: polls: killed processes end by themselves
  }
  if (!end_) end_ = {.signal = SIGKILL};
}

}  // namespace longhaul
