// What does a training step cost here, beside the same network in plain libtorch and written out by hand? And an
// operation of a plan?
#include <cmath>
#include <stdexcept>

#include "benchmarks/benchmarks.h"
#include "benchmarks/graph_training.h"
#include "benchmarks/torch_peers.h"
#include "longhaul/longhaul.h"

namespace longhaul::bench {
namespace {

template <typename Training>
double steps_per_second(Training& training, int steps) {
  const double seconds = time_seconds([&] {
    for (int i = 0; i < steps; ++i) training.step();
  });
  if (!std::isfinite(training.loss())) throw std::runtime_error("training diverged");
  return steps / seconds;
}

// Both sides step in turns, a tenth of the sample each, so that a change of the machine's pace meets both.
template <typename Ours, typename Peer>
Pair sample(Ours& ours, Peer& peer, int steps) {
  Pair pair;
  for (int turn = 0; turn < 10; ++turn) {
    pair.ours += steps_per_second(ours, steps / 10) / 10;
    pair.beside += steps_per_second(peer, steps / 10) / 10;
  }
  return pair;
}

using MakeOurs = std::function<std::shared_ptr<GraphTraining>()>;
using MakePeer = std::function<std::unique_ptr<TorchPeer>()>;

Row training_row(const std::string& name, const std::string& what, double goal, int steps, const MakeOurs& make_ours,
                 const MakePeer& make_peer) {
  return {.name = "training/" + name,
          .what = what,
          .unit = "steps/s",
          .goal = goal,
          .sample =
              [=, ours = std::shared_ptr<GraphTraining>(), peer = std::shared_ptr<TorchPeer>()]() mutable {
                set_intra_op_threads(1);
                if (!ours) {
                  ours = make_ours();
                  peer = make_peer();
                }
                return sample(*ours, *peer, steps);
              },
          .samples = 9};
}

// Nanoseconds for an operation of a plan, and for a direct call of the same operator, each on 4 floats.
Pair sample_operation() {
  constexpr int kOperations = 1000, kRuns = 200;
  Graph graph;
  const Scope root(graph);
  const Output x = ops::placeholder(root, kFloat, {4}, "x");
  Output sum = x;
  for (int i = 0; i < kOperations; ++i) sum = ops::add(root, sum, x);
  auto session = new_session("", graph);
  const Callable run = session->make_callable(sum.op(), {x});
  const Tensor value = Tensor::of<float>({1, 2, 3, 4});
  run(value);
  const double ours = time_seconds([&] {
    for (int i = 0; i < kRuns; ++i) run(value);
  });
  const double beside = direct_add_seconds(kOperations * kRuns, /*into_buffer=*/false);
  return {ours * 1e9 / kOperations / kRuns, beside * 1e9 / kOperations / kRuns};
}

// A variable of 1 GiB that a step replaces by 0.999 times itself.
class Scaling {
 public:
  static constexpr int64_t kElements = int64_t{1} << 28;

  Scaling() {
    const Scope root(graph_);
    const Variable w = ops::variable(root, "w", ops::ones(root, {kElements}));
    const Operation scale = ops::assign(root, w, ops::mul(root, w, 0.999)).op();
    session_ = new_session("", graph_);
    session_->run(ops::global_variables_initializer(root));
    step_ = session_->make_callable(scale, {});
  }
  void step() { step_(); }

 private:
  Graph graph_;
  std::unique_ptr<Session> session_;
  Callable step_;
};

std::function<Pair()> sample_scaling() {
  constexpr int kSteps = 5;
  const auto ms = [](const std::function<void()>& step) {
    return 1e3 * time_seconds([&] {
             for (int i = 0; i < kSteps; ++i) step();
           }) /
           kSteps;
  };
  return [=, ours = std::shared_ptr<Scaling>(), beside = std::function<void()>()]() mutable {
    set_intra_op_threads(1);
    if (!ours) {
      ours = std::make_shared<Scaling>();
      beside = scaling_in_place(Scaling::kElements);
    }
    return Pair{ms([&] { ours->step(); }), ms(beside)};
  };
}

}  // namespace

void add_training_rows(std::vector<Row>& rows) {
  const MlpShape big = mlp_shape("mlp_784_256_128_10"), small = mlp_shape("mlp_64_32_10");
  const auto our_big = [=] { return GraphTraining::mlp(big); };
  const auto our_cnn = [] { return GraphTraining::cnn(); };
  const auto our_small = [=] { return GraphTraining::mlp(small); };
  rows.push_back(training_row("mlp_784_256_128_10",
                              "compared with libtorch's modules, autograd and optim::SGD, one thread", 1.2, 500,
                              our_big, [=] { return module_mlp(big); }));
  rows.push_back(training_row("mlp_64_32_10", "compared with modules, autograd and optim::SGD", 1.8, 10000, our_small,
                              [=] { return module_mlp(small); }));
  rows.push_back(training_row("cnn", "compared with modules, autograd and optim::SGD", 1.0, 30, our_cnn, module_cnn));
  rows.push_back(training_row("mlp_784_256_128_10_by_hand", "compared with a step written by hand without a tape", 0.95,
                              500, our_big, [=] { return manual_mlp(big); }));
  rows.push_back(training_row("mlp_64_32_10_by_hand", "compared with a step written by hand without a tape", 0.85,
                              10000, our_small, [=] { return manual_mlp(small); }));
  rows.push_back(training_row("cnn_by_hand", "compared with a step written by hand without a tape", 0.97, 30, our_cnn,
                              manual_cnn));
  rows.push_back({.name = "training/operation",
                  .what = "one operation of a plan, compared with a direct call of at::add",
                  .unit = "ns",
                  .goal = 60,
                  .bound = Bound::kAtMostMore,
                  .sample = sample_operation,
                  .samples = 9});
  rows.push_back({.name = "training/assign_1GiB",
                  .what = "w := 0.999 w, compared with one pass over memory by at::mul_, one thread",
                  .unit = "ms",
                  .goal = 1.1,
                  .bound = Bound::kAtMost,
                  .sample = sample_scaling()});
}

}  // namespace longhaul::bench
