// What does a program get that says nothing about threads? Beside one thread, and beside all of them; alone, and with
// two other processes that are busy. Each figure is of a process of its own (threads_probe.cc).
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "benchmarks/benchmarks.h"
#include "benchmarks/child.h"
#include "longhaul/io/process/process_limits.h"

namespace longhaul::bench {
namespace {

// Two processes that do nothing but compute, each in a session of its own as those of other users are.
class Neighbours {
 public:
  Neighbours() {
    for (int i = 0; i < 2; ++i) {
      const pid_t pid = fork();
      if (pid != 0) {
        pids_.push_back(pid);
        continue;
      }
      setsid();
      volatile unsigned busy = 0;
      while (true) busy = busy + 1;
    }
  }
  ~Neighbours() {
    for (const pid_t pid : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

 private:
  std::vector<pid_t> pids_;
};

double steps_per_second(const std::string& net, const std::string& kind, int threads) {
  return std::stod(Child({THREADS_PROBE_PROGRAM, net, kind, std::to_string(threads)}).read_until(""));
}

Pair alone(const std::string& net, const std::string& kind) {
  const double one = steps_per_second(net, kind, 1), all = steps_per_second(net, kind, usable_processors());
  return {steps_per_second(net, kind, 0), std::max(one, all)};
}

Pair with_neighbours(const std::string& net, const std::string& kind) {
  const Neighbours neighbours;
  return {steps_per_second(net, kind, 0), steps_per_second(net, kind, 1)};
}

}  // namespace

void add_threads_rows(std::vector<Row>& rows) {
  for (const std::string net : {"mlp_64_32_10", "mlp_784_256_128_10", "cnn"}) {
    for (const std::string kind : {"graph", "bound"}) {
      const std::string name = "threads/" + net + "_" + kind;
      rows.push_back(
          {.name = name,
           .what = "steps with the default number of threads, compared with the better of one thread and all",
           .unit = "steps/s",
           .goal = 0.95,
           .forgive_noise = true,
           .sample = [=] { return alone(net, kind); }});
      rows.push_back({.name = name + "_neighbours",
                      .what = "the same next to two busy processes, compared with one thread there",
                      .unit = "steps/s",
                      .goal = 0.8,
                      .forgive_noise = true,
                      .sample = [=] { return with_neighbours(net, kind); }});
    }
  }
}

}  // namespace longhaul::bench
