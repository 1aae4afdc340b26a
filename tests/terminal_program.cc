#include "tests/terminal_program.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace longhaul::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLongestRead{100};

}  // namespace

TerminalProgram::TerminalProgram(const std::vector<std::string>& command, unsigned short columns) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  pid_ = forkpty(&terminal_, nullptr, nullptr, &size);
  if (pid_ == 0) {
    for (const int signal : {SIGHUP, SIGINT, SIGPIPE, SIGQUIT}) ::signal(signal, SIG_DFL);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  EXPECT_GT(pid_, 0) << "no pseudo terminal";
}

TerminalProgram::~TerminalProgram() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  ::close(terminal_);
}

void TerminalProgram::type(const std::string& keys) {
  EXPECT_EQ(::write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

void TerminalProgram::send(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}

bool TerminalProgram::read_more(std::chrono::milliseconds longest) {
  pollfd wanted{.fd = terminal_, .events = POLLIN, .revents = 0};
  if (::poll(&wanted, 1, static_cast<int>(longest.count())) == 0) return true;
  std::array<char, 4096> part;
  const ssize_t count = ::read(terminal_, part.data(), part.size());
  if (count <= 0) return false;
  shown_.append(part.data(), static_cast<size_t>(count));
  for (size_t at = shown_.find("\r\n"); at != shown_.npos; at = shown_.find("\r\n", at)) shown_.erase(at, 1);
  return true;
}

bool TerminalProgram::shows(const std::string& text, std::chrono::seconds timeout) {
  const auto end = Clock::now() + timeout;
  while (shown_.find(text) == shown_.npos) {
    if (Clock::now() > end || !read_more(kLongestRead)) return false;
  }
  return true;
}

int TerminalProgram::wait(std::chrono::seconds timeout) {
  const auto end = Clock::now() + timeout;
  while (read_more(kLongestRead)) {
    if (Clock::now() < end) continue;
    ADD_FAILURE() << "it still runs: " << shown_;
    send(SIGKILL);
    break;
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace longhaul::testing
