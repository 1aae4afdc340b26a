// What does supervision cost a training that stays libtorch's own? Steps of a bound module under a Supervisor beside
// the same loop without us, in turns.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "benchmarks/benchmarks.h"
#include "benchmarks/files.h"
#include "benchmarks/torch_peers.h"
#include "longhaul/longhaul.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::bench {
namespace {

constexpr int kTurns = 20;

double steps_per_second(const std::function<void()>& step, int steps) {
  const double seconds = time_seconds([&] {
    for (int i = 0; i < steps; ++i) step();
  });
  return steps / seconds;
}

Pair sample_bound(const MlpShape& shape, int steps) {
  set_intra_op_threads(1);
  const testing::TemporaryDirectory directory;
  const auto bound = module_mlp(shape), unbound = module_mlp(shape);
  Graph graph;
  const Scope root(graph);
  const TorchTraining training = bound->bind(root);
  summary::scalar(root, "loss", training.loss);
  Supervisor sv({.graph = &graph, .logdir = directory.path(), .services = {.save_at_end = false}});
  Pair pair;
  sv.managed_session([&](Session& session) {
    const Callable train = session.make_callable(training.train_op);
    for (int turn = 0; turn < kTurns; ++turn) {
      pair.ours += steps_per_second([&] { train(); }, steps / kTurns) / kTurns;
      pair.beside += steps_per_second([&] { unbound->step(); }, steps / kTurns) / kTurns;
    }
  });
  if (!std::isfinite(bound->loss()) || !std::isfinite(unbound->loss())) throw std::runtime_error("training diverged");
  return pair;
}

// Milliseconds that a snapshot of a bound module of 30 million floats takes, and for which a step may wait; beside
// memcpy of as much.
Pair sample_bound_snapshot() {
  constexpr int kSnapshots = 10;
  const MlpShape shape{1, {5000, 5000, 1000}};
  const size_t floats = 5000 * 5000 + 5000 + 5000 * 1000 + 1000;
  const auto bound = module_mlp(shape);
  Graph graph;
  const Scope root(graph);
  const TorchTraining training = bound->bind(root);
  const Operation init = ops::global_variables_initializer(root);
  const auto session = new_session("", graph);
  session->run(init);
  std::vector<Fetch> variables(training.model.begin(), training.model.end());
  std::vector<float> from(floats, 1.0f), to(floats);
  Pair pair;
  std::vector<double> ours, beside;
  for (int i = 0; i < kSnapshots; ++i) {
    ours.push_back(1e3 * time_seconds([&] { session->run(variables, {}, {.snapshot = true}); }));
    beside.push_back(1e3 * time_seconds([&] { std::copy(from.begin(), from.end(), to.begin()); }));
  }
  return {median(ours), median(beside)};
}

}  // namespace

void add_bound_rows(std::vector<Row>& rows) {
  const auto add = [&](const std::string& name, const MlpShape& shape, int steps, double goal) {
    rows.push_back({.name = "bound/" + name,
                    .what = "steps of a bound libtorch module under a Supervisor, compared with the unbound loop",
                    .unit = "steps/s",
                    .goal = goal,
                    .forgive_noise = true,
                    .sample = [=] { return sample_bound(shape, steps); },
                    .samples = 9});
  };
  add("mlp_784_256_128_10", {64, {784, 256, 128, 10}}, 1500, 0.99);
  add("mlp_64_32_10", {32, {64, 32, 10}}, 10000, 0.95);
  rows.push_back({.name = "bound/snapshot",
                  .what = "a snapshot of 30 million bound floats, compared with a copy of as many",
                  .unit = "ms",
                  .goal = 1.5,
                  .bound = Bound::kAtMost,
                  .sample = sample_bound_snapshot});
}

}  // namespace longhaul::bench
