#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/process.h"

namespace longhaul::testing {

// Where tasks are that are not on this machine's loopback.
struct ClusterMachines {
  std::vector<std::string> addresses;  // of ClusterProcesses::tasks(), in their order
  std::vector<std::string> wrapper{};  // a program that runs the one that its last arguments name
  // Calls `start` on the task's machine.
  std::function<void(const std::string& task, const std::function<void()>& start)> start_on;
};

// The tasks of the example's cluster, each a process: a chief, two workers, two parameter servers ("ps-0"). What each
// start of a task prints is in files of its own. One thread.
class ClusterProcesses {
 public:
  // The tasks listen on ports of 127.0.0.1 at which nobody listens now. `flags` are for each of them.
  ClusterProcesses(std::string program, std::string directory, std::vector<std::string> flags);
  ClusterProcesses(std::string program, std::string directory, std::vector<std::string> flags,
                   ClusterMachines machines);

  static const std::vector<std::string>& tasks();
  void start(const std::string& task);
  void start_all();
  // kill -9. False: it had ended by itself.
  bool kill(const std::string& task);
  // Asks the chief and the workers to stop, waits until they have, and then ends the parameter servers. The chief's
  // status.
  int stop_all();

  Process& process(const std::string& task) { return *processes_.at(task); }
  // Whether this start of the task prints that it trains, or logs a text so many times, within a minute.
  bool trains(const std::string& task) { return process(task).prints("step "); }
  bool logs(const std::string& task, const std::string& text, int times = 1);
  int times_logged(const std::string& task, const std::string& text) const;  // by its newest start
  std::string everything() const;  // that the newest start of each task has printed, for messages

 private:
  const std::string program_, directory_;
  const std::vector<std::string> flags_;
  const ClusterMachines machines_;
  std::map<std::string, int> starts_;  // of each task
  std::map<std::string, std::unique_ptr<Process>> processes_;
};

}  // namespace longhaul::testing
