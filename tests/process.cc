#include "tests/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <fstream>
#include <sstream>
#include <thread>

extern char** environ;

namespace longhaul::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPoll{5};

std::string contents_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void open_for_writing(posix_spawn_file_actions_t* actions, int descriptor, const std::string& path) {
  posix_spawn_file_actions_addopen(actions, descriptor, path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
}

// A test may run under nohup, or in the background, where these are ignored; the program is to have them as always.
sigset_t signals_of_terminals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGHUP, SIGINT, SIGPIPE}) sigaddset(&signals, signal);
  return signals;
}

}  // namespace

Process::Process(const std::vector<std::string>& command, std::string output_path, Stdio stdio)
    : output_path_(std::move(output_path)) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const bool is_open = stdio == Stdio::kOpen;
  open_for_writing(&actions, is_open ? 1 : 3, output_path_);
  open_for_writing(&actions, 2, output_path_ + ".err");
  for (int descriptor = 0; !is_open && descriptor < 3; ++descriptor) {
    posix_spawn_file_actions_addclose(&actions, descriptor);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  const sigset_t by_default = signals_of_terminals();
  posix_spawnattr_setsigdefault(&attributes, &by_default);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  EXPECT_EQ(posix_spawn(&pid_, arguments[0], &actions, &attributes, arguments.data(), environ), 0) << command[0];
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
}

Process::~Process() {
  if (try_reap()) return;
  send(SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Process::send(int signal) const {
  if (status_ < 0) kill(pid_, signal);  // else the number may be another's by now
}

bool Process::try_reap() {
  int status = 0;
  if (status_ < 0 && waitpid(pid_, &status, WNOHANG) == pid_) {
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return status_ >= 0;
}

bool Process::runs_for(std::chrono::milliseconds time) {
  const auto end = Clock::now() + time;
  while (Clock::now() < end) {
    if (try_reap()) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

int Process::wait(std::chrono::seconds timeout) {
  if (runs_for(timeout)) ADD_FAILURE() << "still running after " << timeout.count() << " s:\n" << output() << errors();
  return status_;
}

std::string Process::output() const {
  return contents_of(output_path_);
}
std::string Process::errors() const {
  return contents_of(output_path_ + ".err");
}

bool Process::prints(const std::string& text, std::chrono::seconds timeout) {
  const auto end = Clock::now() + timeout;
  while (output().find(text) == std::string::npos) {
    if (Clock::now() > end) return false;
    if (try_reap()) return output().find(text) != std::string::npos;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

}  // namespace longhaul::testing
