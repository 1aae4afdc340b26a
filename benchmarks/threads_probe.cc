// threads_probe NET KIND THREADS: trains a network for two seconds and prints its steps per second. Whoever chooses
// threads chooses them for the whole process, so that each choice needs one of its own.
//   NET: mlp_64_32_10, mlp_784_256_128_10 or cnn; KIND: graph or bound; THREADS: 0, what the library chooses.
#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "benchmarks/bench.h"
#include "benchmarks/graph_training.h"
#include "benchmarks/torch_peers.h"
#include "longhaul/longhaul.h"

namespace longhaul::bench {
namespace {

double steps_per_second(const std::function<void()>& step) {
  constexpr double kWarmUp = 0.5, kSeconds = 2;
  double seconds = 0;
  while (seconds < kWarmUp) seconds += time_seconds(step);
  int steps = 0;
  for (seconds = 0; seconds < kSeconds; ++steps) seconds += time_seconds(step);
  return steps / seconds;
}

double graph_rate(const std::string& net, int threads) {
  const auto training = net == "cnn" ? GraphTraining::cnn(threads) : GraphTraining::mlp(mlp_shape(net), threads);
  return steps_per_second([&] { training->step(); });
}

double bound_rate(const std::string& net, int threads) {
  const auto bound = net == "cnn" ? module_cnn() : module_mlp(mlp_shape(net));
  Graph graph;
  const Scope root(graph);
  const TorchTraining training = bound->bind(root);
  const Operation init = ops::global_variables_initializer(root);
  const auto session = new_session("", graph, {.intra_op_parallelism_threads = threads});
  session->run(init);
  const Callable train = session->make_callable(training.train_op);
  return steps_per_second([&] { train(); });
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  using namespace longhaul::bench;
  if (argc != 4) {
    fmt::print(stderr, "usage: threads_probe NET KIND THREADS\n");
    return 2;
  }
  const std::string net = argv[1], kind = argv[2];
  const int threads = std::atoi(argv[3]);
  try {
    fmt::print("{}\n", kind == "graph" ? graph_rate(net, threads) : bound_rate(net, threads));
  } catch (const std::exception& error) {
    fmt::print(stderr, "threads_probe: {}\n", error.what());
    return 1;
  }
  return 0;
}
