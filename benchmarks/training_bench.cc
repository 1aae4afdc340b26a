// What does a training step cost here, beside the same network in plain libtorch and written out by hand? And an
// operation of a plan?
#include <cmath>
#include <stdexcept>

#include "benchmarks/benchmarks.h"
#include "benchmarks/torch_peers.h"
#include "examples/classifier.h"
#include "longhaul/longhaul.h"

namespace longhaul::bench {
namespace {

// A network trained in a session, one step a call.
class OurTraining {
 public:
  static std::shared_ptr<OurTraining> mlp(const MlpShape& shape) {
    auto training = std::make_shared<OurTraining>();
    const Scope root(training->graph_);
    const Output images = ops::placeholder(root, kFloat, {-1, shape.sizes.front()}, "x");
    const Output labels = ops::placeholder(root, kInt64, {-1}, "y");
    Output activation = images;
    for (size_t i = 1; i < shape.sizes.size(); ++i) {
      activation = ops::dense(root, activation, shape.sizes[i], "layer");
      if (i + 1 < shape.sizes.size()) activation = ops::relu(root, activation);
    }
    const Output loss = ops::cross_entropy_loss(root, activation, labels);
    training->start(images, labels, loss, GradientDescentOptimizer(0.01).minimize(loss), shape.batch,
                    shape.sizes.front(), shape.sizes.back());
    return training;
  }

  static std::shared_ptr<OurTraining> cnn() {
    auto training = std::make_shared<OurTraining>();
    const auto net =
        examples::build_classifier(training->graph_, {.model = "cnn", .optimizer = "sgd", .learning_rate = 0.01});
    training->start(net.images, net.labels, net.loss, net.train_op, 64, 784, 10);
    return training;
  }

  void step() { step_(x_, y_); }
  double loss() { return session_->run(loss_, {{images_, x_}, {labels_, y_}}).item<double>(); }

 private:
  void start(const Output& images, const Output& labels, const Output& loss, const Operation& train_op, int64_t batch,
             int64_t inputs, int64_t classes) {
    images_ = images;
    labels_ = labels;
    loss_ = loss;
    x_ = Tensor(kFloat, {batch, inputs});
    for (float& value : x_.mutable_flat<float>())
      value = static_cast<float>(std::rand()) / static_cast<float>(RAND_MAX);
    y_ = Tensor(kInt64, {batch});
    for (int64_t& value : y_.mutable_flat<int64_t>()) value = std::rand() % classes;
    const Operation init = ops::global_variables_initializer(Scope(graph_));
    session_ = new_session("", graph_);
    session_->run(init);
    step_ = session_->make_callable(train_op, {images, labels});
  }

  Graph graph_;
  Output images_, labels_, loss_;
  Tensor x_, y_;
  std::unique_ptr<Session> session_;
  Callable step_;
};

template <typename Training>
double steps_per_second(Training& training, int steps) {
  const double seconds = time_seconds([&] {
    for (int i = 0; i < steps; ++i) training.step();
  });
  if (!std::isfinite(training.loss())) throw std::runtime_error("the training diverged");
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

using MakeOurs = std::function<std::shared_ptr<OurTraining>()>;
using MakePeer = std::function<std::unique_ptr<TorchPeer>()>;

Row training_row(const std::string& name, const std::string& what, double goal, int steps, const MakeOurs& make_ours,
                 const MakePeer& make_peer) {
  return {.name = "training/" + name,
          .what = what,
          .unit = "steps/s",
          .goal = goal,
          .sample =
              [=, ours = std::shared_ptr<OurTraining>(), peer = std::shared_ptr<TorchPeer>()]() mutable {
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

}  // namespace

void add_training_rows(std::vector<Row>& rows) {
  const MlpShape big{64, {784, 256, 128, 10}}, small{32, {64, 32, 10}};
  const auto our_big = [=] { return OurTraining::mlp(big); };
  const auto our_small = [=] { return OurTraining::mlp(small); };
  rows.push_back(training_row("mlp_784_256_128_10", "beside libtorch's modules, autograd and optim::SGD, one thread",
                              1.2, 500, our_big, [=] { return module_mlp(big); }));
  rows.push_back(training_row("mlp_64_32_10", "beside modules, autograd and optim::SGD", 1.8, 10000, our_small,
                              [=] { return module_mlp(small); }));
  rows.push_back(training_row("cnn", "beside modules, autograd and optim::SGD", 1.0, 30, OurTraining::cnn, module_cnn));
  rows.push_back(training_row("mlp_784_256_128_10_by_hand", "beside a step written by hand without a tape", 0.95, 500,
                              our_big, [=] { return manual_mlp(big); }));
  rows.push_back(training_row("mlp_64_32_10_by_hand", "beside a step written by hand without a tape", 0.85, 10000,
                              our_small, [=] { return manual_mlp(small); }));
  rows.push_back(training_row("cnn_by_hand", "beside a step written by hand without a tape", 0.97, 30, OurTraining::cnn,
                              manual_cnn));
  rows.push_back({.name = "training/operation",
                  .what = "one operation of a plan, beside a direct call of at::add",
                  .unit = "ns",
                  .goal = 60,
                  .bound = Bound::kAtMostMore,
                  .sample = sample_operation,
                  .samples = 9});
}

}  // namespace longhaul::bench
