#include "tests/network_namespaces.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <system_error>

extern char** environ;

namespace longhaul::testing {
namespace {

constexpr char kIp[] = "/sbin/ip", kSwitch[] = "switch", kLine[] = "line";

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

int exit_status_of(pid_t process) {
  int status = 0;
  waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Runs it in the namespace of this thread. What it says of an error goes to the test's errors.
int status_of_ip(const std::vector<std::string>& words) {
  std::vector<char*> arguments{const_cast<char*>(kIp)};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t process = -1;
  const int error = posix_spawn(&process, kIp, nullptr, nullptr, arguments.data(), environ);
  return error == 0 ? exit_status_of(process) : -1;
}

void ip(const std::vector<std::string>& words) {
  if (status_of_ip(words) == 0) return;
  throw std::system_error(EPERM, std::generic_category(), fmt::format("{} {}", kIp, fmt::join(words, " ")));
}

int this_space() {
  const int space = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  if (space < 0) fail("/proc/thread-self/ns/net");
  return space;
}

// Whoever this is, is root in the new namespace of users.
bool become_root_of_new_users() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << fmt::format("0 {} 1", user);
  std::ofstream("/proc/self/gid_map") << fmt::format("0 {} 1", group);
  return geteuid() == 0;
}

// Only those who may not do so at once need a namespace of users, which a chroot refuses.
bool try_new_space() {
  return unshare(CLONE_NEWNET) == 0 || become_root_of_new_users();
}

int new_space() {
  if (!try_new_space()) fail("a network namespace");
  return this_space();
}

enum : int { kHasAll, kHasNoNamespaces, kHasNoBridges, kHasNoVeth };

int look_for_what_is_missing() {
  if (!try_new_space()) return kHasNoNamespaces;
  if (status_of_ip({"link", "add", "name", kSwitch, "type", "bridge"}) != 0) return kHasNoBridges;
  return status_of_ip({"link", "add", "name", kLine, "type", "veth", "peer", "name", "end"}) == 0 ? kHasAll
                                                                                                  : kHasNoVeth;
}

}  // namespace

std::string NetworkNamespaces::missing() {
  if (access(kIp, X_OK) != 0) return fmt::format("there is no {}: apt-get install iproute2", kIp);
  const pid_t process = fork();
  if (process == 0) _exit(look_for_what_is_missing());
  switch (exit_status_of(process)) {
    case kHasAll: return "";
    case kHasNoNamespaces: return "a process may not make a network namespace here";
    case kHasNoBridges: return "this kernel makes no bridge in a network namespace";
    case kHasNoVeth: return "this kernel makes no veth pair in a network namespace";
    default: return "the process that tried to make a network namespace died";
  }
}

NetworkNamespaces::NetworkNamespaces(const std::vector<std::string>& machines) : switch_(new_space()) {
  ip({"link", "add", "name", kSwitch, "type", "bridge"});
  ip({"link", "set", "dev", kSwitch, "up"});
  int number = 0;
  for (const std::string& name : machines) add(name, ++number);
}

NetworkNamespaces::~NetworkNamespaces() {
  for (const auto& [name, machine] : machines_) close(machine.space);
  close(switch_);
}

void NetworkNamespaces::add(const std::string& name, int number) {
  const int space = new_space();
  machines_[name] = {.space = space, .host = fmt::format("10.77.0.{}", number)};
  if (setns(switch_, CLONE_NEWNET) != 0) fail("the switch's namespace");
  ip({"link", "add", "name", name, "type", "veth", "peer", "name", kLine, "netns",
      fmt::format("/proc/{}/fd/{}", getpid(), space)});
  ip({"link", "set", "dev", name, "master", kSwitch, "up"});
  on(name, [&] {
    ip({"link", "set", "dev", "lo", "up"});
    ip({"address", "add", host(name) + "/24", "dev", kLine});
    ip({"link", "set", "dev", kLine, "up"});
  });
}

void NetworkNamespaces::on(const std::string& machine, const std::function<void()>& function) const {
  if (setns(machines_.at(machine).space, CLONE_NEWNET) != 0) fail("the namespace of " + machine);
  try {
    function();
  } catch (...) {
    setns(switch_, CLONE_NEWNET);
    throw;
  }
  if (setns(switch_, CLONE_NEWNET) != 0) fail("the switch's namespace");
}

// The line stays up at both ends.
void NetworkNamespaces::cut(const std::string& machine) const {
  ip({"link", "set", "dev", machine, "nomaster"});
}

// The switch forgets what is at this line, does not learn it again, and sends there only what is for it.
void NetworkNamespaces::deafen(const std::string& machine) const {
  ip({"link", "set", "dev", machine, "type", "bridge_slave", "fdb_flush", "learning", "off", "flood", "off",
      "mcast_flood", "off", "bcast_flood", "off"});
}

// A line that is put into the switch again begins as a new one.
void NetworkNamespaces::mend(const std::string& machine) const {
  ip({"link", "set", "dev", machine, "nomaster"});
  ip({"link", "set", "dev", machine, "master", kSwitch});
}

}  // namespace longhaul::testing
