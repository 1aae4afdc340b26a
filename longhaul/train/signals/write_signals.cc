#include "longhaul/train/signals/write_signals.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/train/signals/used_signals.h"

namespace longhaul {
namespace {

// A handler, and not SIG_IGN, which would be handed on to the programs that this one starts.
void do_nothing(int) {}

struct Users {
  Mutex mutex;
  int count GUARDED_BY(mutex) = 0;
  std::vector<int> taken GUARDED_BY(mutex);
};

Users& all_users() {
  static auto* const users = new Users;
  return *users;
}

bool has_action(int signal, void (*handler)(int)) {
  struct sigaction action{};
  return sigaction(signal, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
         action.sa_handler == handler;
}

void set_action(int signal, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

// Here, where a failing write ends nothing.
void flush_standard_output() {
  std::fflush(stdout);
  try {
    if (std::cout.rdbuf() != nullptr) std::cout.rdbuf()->pubsync();
  } catch (...) {  // of a buffer of the program's own
  }
}

// What the process prints from then on, or has not got rid of, would end it by SIGPIPE.
bool has_lost_its_reader(int fd) {
  struct pollfd state{.fd = fd};
  // wait: none
  if (poll(&state, 1, 0) != 1) return false;
  const bool is_closed = (state.revents & POLLHUP) != 0 && isatty(fd) == 0;  // a socket
  return (state.revents & POLLERR) != 0 || is_closed;
}

}  // namespace

WriteSignals::WriteSignals() {
  Users& users = all_users();
  MutexLock lock(users.mutex);
  if (users.count++ > 0) return;
  for (const int signal : signals_for({SignalUse::kFailedWrite})) {
    if (!has_action(signal, SIG_DFL)) continue;
    set_action(signal, do_nothing);
    users.taken.push_back(signal);
  }
}

WriteSignals::~WriteSignals() {
  Users& users = all_users();
  MutexLock lock(users.mutex);
  if (--users.count > 0) return;
  const bool has_taken_pipe = std::find(users.taken.begin(), users.taken.end(), SIGPIPE) != users.taken.end();
  if (has_taken_pipe) flush_standard_output();
  const bool is_unread = has_lost_its_reader(STDOUT_FILENO) || has_lost_its_reader(STDERR_FILENO);
  for (const int signal : users.taken) {
    const bool is_to_stay = signal == SIGPIPE && is_unread;
    if (!is_to_stay && has_action(signal, do_nothing)) set_action(signal, SIG_DFL);
  }
  users.taken.clear();
}

}  // namespace longhaul
