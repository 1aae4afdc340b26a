// What do a MonitoredSession and its hooks cost a training? Steps per second with them beside the bare session's, in
// turns: on the example's network, and on a step so small that everything beside it shows.
#include <functional>

#include "benchmarks/benchmarks.h"
#include "benchmarks/files.h"
#include "examples/classifier.h"
#include "longhaul/longhaul.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::bench {
namespace {

enum class Size { kSmall, kExample };

// A network and a batch for it: of 64-32-10 units, or the example's.
struct Model {
  explicit Model(Size size) {
    size == Size::kSmall ? build_small() : build_example();
    for (float& value : images.mutable_flat<float>()) {
      value = static_cast<float>(std::rand()) / static_cast<float>(RAND_MAX);
    }
    for (int64_t& value : labels.mutable_flat<int64_t>()) value = std::rand() % 10;
  }

  void build_small() {
    const Scope root(graph);
    x = ops::placeholder(root, kFloat, {-1, 64}, "x");
    y = ops::placeholder(root, kInt64, {-1}, "y");
    const Output hidden = ops::relu(root, ops::dense(root, x, 32, "hidden"));
    const Output loss = ops::cross_entropy_loss(root, ops::dense(root, hidden, 10, "logits"), y);
    summary::scalar(root, "loss", loss);
    train_op = GradientDescentOptimizer(0.01).minimize(loss, ops::global_step(root));
    images = Tensor(kFloat, {32, 64});
    labels = Tensor(kInt64, {32});
  }
  void build_example() {
    const auto net = examples::build_classifier(graph, {});
    x = net.images;
    y = net.labels;
    train_op = net.train_op;
    images = Tensor(kFloat, {64, 784});
    labels = Tensor(kInt64, {64});
  }

  Graph graph;
  Output x, y;
  Operation train_op;
  Tensor images, labels;
};

class BareTraining {
 public:
  explicit BareTraining(Size size) : model_(size), session_(new_session("", model_.graph)) {
    session_->run(ops::global_variables_initializer(Scope(model_.graph)));
    step_ = session_->make_callable(model_.train_op, {model_.x, model_.y});
  }
  void step() { step_(model_.images, model_.labels); }

 private:
  Model model_;
  const std::unique_ptr<Session> session_;
  Callable step_;
};

class MonitoredTraining {
 public:
  MonitoredTraining(Size size, const std::string& checkpoint_dir)
      : model_(size),
        session_(monitored_session_options({.graph = &model_.graph, .checkpoint_dir = checkpoint_dir})),
        step_(session_.make_callable(model_.train_op, {model_.x, model_.y})) {}
  void step() {
    if (!session_.should_stop()) step_(model_.images, model_.labels);
  }

 private:
  Model model_;
  MonitoredSession session_;
  MonitoredCallable step_;
};

template <typename Training>
double steps_per_second(Training& training, int steps) {
  return steps / time_seconds([&] {
           for (int i = 0; i < steps; ++i) training.step();
         });
}

// Both in turns, a small part of the sample each, so that a change of the machine's pace meets both.
Pair run_in_turns(MonitoredTraining& monitored, BareTraining& bare, int steps) {
  constexpr int kTurns = 50;
  Pair pair;
  for (int turn = 0; turn < kTurns; ++turn) {
    pair.ours += steps_per_second(monitored, steps) / kTurns;
    pair.beside += steps_per_second(bare, steps) / kTurns;
  }
  return pair;
}

Pair sample_with_hooks(Size size, int steps) {
  const testing::TemporaryDirectory directory;
  BareTraining bare(size);
  auto monitored = std::make_unique<MonitoredTraining>(size, directory.path());
  const Pair pair = run_in_turns(*monitored, bare, steps);
  monitored.reset();
  return pair;
}

Pair sample_without_hooks(Size size, int steps) {
  BareTraining bare(size);
  MonitoredTraining monitored(size, "");
  return run_in_turns(monitored, bare, steps);
}

Row monitored_row(const std::string& name, const std::string& what, double goal, const std::function<Pair()>& sample) {
  return {.name = "monitored/" + name,
          .what = what,
          .unit = "steps/s",
          .goal = goal,
          .forgive_noise = true,
          .sample =
              [=] {
                set_intra_op_threads(1);
                return sample();
              },
          .samples = 9};
}

}  // namespace

void add_monitored_rows(std::vector<Row>& rows) {
  constexpr int kSmallSteps = 1000, kExampleSteps = 50;  // in a turn
  rows.push_back(monitored_row("no_hooks", "small steps of a MonitoredSession, compared with the bare session", 0.98,
                               [=] { return sample_without_hooks(Size::kSmall, kSmallSteps); }));
  rows.push_back(monitored_row("default_hooks",
                               "steps with all hooks at their defaults, compared with the bare session", 0.98,
                               [=] { return sample_with_hooks(Size::kExample, kExampleSteps); }));
  // Every 100 steps, which is every 2 ms here: a summary, the speed, and a line in the log.
  rows.push_back(monitored_row("default_hooks_small", "small steps with all hooks, compared with the bare session", 0.9,
                               [=] { return sample_with_hooks(Size::kSmall, kSmallSteps); }));
}

}  // namespace longhaul::bench
