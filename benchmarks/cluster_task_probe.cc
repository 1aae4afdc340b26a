// cluster_task_probe JOB INDEX WORKERS PS: a task of a cluster in a process of its own, which benchmarks kill. WORKERS
// and PS are addresses with commas between them. A ps serves, after the line "serving"; a worker trains the model that
// others have initialised, and prints "stepped" after its first step.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/cluster_model.h"
#include "longhaul/longhaul.h"
#include "longhaul/server.h"

namespace longhaul::bench {
namespace {

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

void tell(const char* line) {
  std::puts(line);
  std::fflush(stdout);
}

void train_until_killed(const Server& server, const ClusterSpec& cluster, int index) {
  Graph graph;
  const auto net = build_cluster_classifier(graph, cluster, index);
  Supervisor sv({.graph = &graph, .is_chief = false});
  const auto body = [&](Session& session) {
    const Callable step = session.make_callable(net.train_op, {net.images, net.labels});
    const auto [images, labels] = classifier_batch();
    step(images, labels);
    tell("stepped");
    while (!sv.should_stop()) step(images, labels);
  };
  const std::vector<std::string> used = {"/job:ps", fmt::format("/job:worker/task:{}", index)};
  sv.managed_session(body,
                     {.master = server.target(), .config = {.device_filters = used}, .max_wait_secs = Seconds{60}});
}

void be_task(const std::string& job, int index, const ClusterSpec& cluster) {
  Server server(cluster, ServerOptions{.job_name = job, .task_index = index});
  if (job == "worker") return train_until_killed(server, cluster, index);
  tell("serving");
  server.join();
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  using namespace longhaul::bench;
  if (argc != 5) {
    fmt::print(stderr, "usage: cluster_task_probe JOB INDEX WORKERS PS\n");
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // whatever ends the benchmark ends its tasks
  try {
    const longhaul::ClusterSpec cluster({{"worker", longhaul::JobTasks(split_at_commas(argv[3]))},
                                         {"ps", longhaul::JobTasks(split_at_commas(argv[4]))}});
    be_task(argv[1], std::atoi(argv[2]), cluster);
  } catch (const std::exception& error) {
    fmt::print(stderr, "cluster_task_probe: {}\n", error.what());
    return 1;
  }
  return 0;
}
