#include "longhaul/train/write_signals.h"

#include <csignal>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/train/used_signals.h"

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
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
         action.sa_handler == handler;
}

void set_action(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
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
  for (const int signal : users.taken) {
    if (has_action(signal, do_nothing)) set_action(signal, SIG_DFL);
  }
  users.taken.clear();
}

}  // namespace longhaul
