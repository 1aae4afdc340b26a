#include "tests/cluster_processes.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace longhaul::testing {
namespace {

constexpr std::chrono::milliseconds kLook{20};
constexpr std::chrono::seconds kLongestWait{60};

// Bound to a port that the system chooses.
int bound_socket(uint16_t* port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(descriptor, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size), 0);
  *port = ntohs(address.sin_port);
  return descriptor;
}

// All are bound before the first is given back, so that they differ.
std::vector<std::string> free_addresses(size_t count) {
  std::vector<std::string> addresses;
  std::vector<int> sockets;
  for (size_t i = 0; i < count; ++i) {
    uint16_t port = 0;
    sockets.push_back(bound_socket(&port));
    addresses.push_back("127.0.0.1:" + std::to_string(port));
  }
  for (const int descriptor : sockets) close(descriptor);
  return addresses;
}

std::vector<std::string> with_addresses(std::vector<std::string> flags, const std::vector<std::string>& at) {
  flags.push_back("--chief_hosts=" + at[0]);
  flags.push_back("--worker_hosts=" + at[1] + "," + at[2]);
  flags.push_back("--ps_hosts=" + at[3] + "," + at[4]);
  return flags;
}

ClusterMachines on_loopback() {
  return {.addresses = free_addresses(ClusterProcesses::tasks().size()),
          .start_on = [](const std::string&, const std::function<void()>& start) { start(); }};
}

int times_in(const std::string& text, const std::string& part) {
  int times = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++times;
  return times;
}

}  // namespace

ClusterProcesses::ClusterProcesses(std::string program, std::string directory, std::vector<std::string> flags)
    : ClusterProcesses(std::move(program), std::move(directory), std::move(flags), on_loopback()) {}

ClusterProcesses::ClusterProcesses(std::string program, std::string directory, std::vector<std::string> flags,
                                   ClusterMachines machines)
    : program_(std::move(program)),
      directory_(std::move(directory)),
      flags_(with_addresses(std::move(flags), machines.addresses)),
      machines_(std::move(machines)) {}

const std::vector<std::string>& ClusterProcesses::tasks() {
  static const auto* const all = new std::vector<std::string>{"chief-0", "worker-0", "worker-1", "ps-0", "ps-1"};
  return *all;
}

void ClusterProcesses::start(const std::string& task) {
  const size_t dash = task.find('-');
  std::vector<std::string> command = machines_.wrapper;
  command.insert(command.end(), {program_, "--job=" + task.substr(0, dash), "--task=" + task.substr(dash + 1)});
  command.insert(command.end(), flags_.begin(), flags_.end());
  const std::string output = directory_ + "/" + task + "." + std::to_string(starts_[task]++);
  machines_.start_on(task, [&] { processes_[task] = std::make_unique<Process>(command, output); });
}

void ClusterProcesses::start_all() {
  for (const std::string& task : tasks()) start(task);
}

bool ClusterProcesses::kill(const std::string& task) {
  process(task).send(SIGKILL);
  return process(task).wait() == 128 + SIGKILL;
}

int ClusterProcesses::stop_all() {
  for (const char* task : {"worker-0", "worker-1", "chief-0"}) process(task).send(SIGTERM);
  for (const char* task : {"worker-0", "worker-1"}) process(task).wait(kLongestWait);
  const int status = process("chief-0").wait(kLongestWait);
  for (const char* task : {"ps-0", "ps-1"}) kill(task);
  return status;
}

bool ClusterProcesses::logs(const std::string& task, const std::string& text, int times) {
  const auto end = std::chrono::steady_clock::now() + kLongestWait;
  while (times_logged(task, text) < times) {
    const bool is_over = std::chrono::steady_clock::now() > end || !process(task).runs_for(kLook);
    if (is_over) return times_logged(task, text) >= times;
  }
  return true;
}

int ClusterProcesses::times_logged(const std::string& task, const std::string& text) const {
  return times_in(processes_.at(task)->errors(), text);
}

std::string ClusterProcesses::everything() const {
  std::string all;
  for (const auto& [task, process] : processes_) {
    all += "---- " + task + " ----\n" + process->output() + process->errors();
  }
  return all;
}

}  // namespace longhaul::testing
