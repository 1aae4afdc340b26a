#include "benchmarks/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

extern char** environ;

namespace longhaul::bench {

Child::Child(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("cannot create a pipe");
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  const int error = posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  output_ = ends[0];
  if (error != 0) throw std::runtime_error("cannot start " + command[0]);
}

Child::~Child() {
  end();
  ::close(output_);
}

void Child::end() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(std::exchange(pid_, -1), nullptr, 0);
}

const std::string& Child::read_until(const std::string& text) {
  char buffer[4096];
  while (text.empty() || seen_.find(text) == std::string::npos) {
    const ssize_t count = ::read(output_, buffer, sizeof buffer);
    if (count <= 0 && text.empty()) return seen_;
    if (count <= 0) throw std::runtime_error("the program ended early; its output: " + seen_);
    seen_.append(buffer, static_cast<size_t>(count));
  }
  return seen_;
}

}  // namespace longhaul::bench
