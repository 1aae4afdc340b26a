// What do a MonitoredSession and its hooks cost a training? Steps per second with them beside the bare session's, in
// turns, on a step so small that everything beside it shows.
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "benchmarks/benchmarks.h"
#include "longhaul/longhaul.h"

namespace longhaul::bench {
namespace {

// A network of 64-32-10 units and a batch for it.
struct SmallTraining {
  SmallTraining() {
    const Scope root(graph);
    const Output hidden = ops::relu(root, ops::dense(root, x, 32, "hidden"));
    const Output loss = ops::cross_entropy_loss(root, ops::dense(root, hidden, 10, "logits"), y);
    summary::scalar(root, "loss", loss);
    train_op = GradientDescentOptimizer(0.01).minimize(loss, ops::global_step(root));
    for (float& value : images.mutable_flat<float>()) {
      value = static_cast<float>(std::rand()) / static_cast<float>(RAND_MAX);
    }
    for (int64_t& value : labels.mutable_flat<int64_t>()) value = std::rand() % 10;
  }

  Graph graph;
  Output x = ops::placeholder(Scope(graph), kFloat, {-1, 64}, "x");
  Output y = ops::placeholder(Scope(graph), kInt64, {-1}, "y");
  Operation train_op;
  Tensor images{kFloat, {32, 64}}, labels{kInt64, {32}};
};

class BareTraining {
 public:
  BareTraining() : session_(new_session("", model_.graph)) {
    session_->run(ops::global_variables_initializer(Scope(model_.graph)));
    step_ = session_->make_callable(model_.train_op, {model_.x, model_.y});
  }
  void step() { step_(model_.images, model_.labels); }

 private:
  SmallTraining model_;
  const std::unique_ptr<Session> session_;
  Callable step_;
};

class MonitoredTraining {
 public:
  explicit MonitoredTraining(const std::string& checkpoint_dir)
      : session_(monitored_session_options({.graph = &model_.graph, .checkpoint_dir = checkpoint_dir})),
        step_(session_.make_callable(model_.train_op, {model_.x, model_.y})) {}
  void step() {
    if (!session_.should_stop()) step_(model_.images, model_.labels);
  }

 private:
  SmallTraining model_;
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
Pair run_in_turns(MonitoredTraining& monitored, BareTraining& bare) {
  constexpr int kTurns = 50, kSteps = 1000;
  Pair pair;
  for (int turn = 0; turn < kTurns; ++turn) {
    pair.ours += steps_per_second(monitored, kSteps) / kTurns;
    pair.beside += steps_per_second(bare, kSteps) / kTurns;
  }
  return pair;
}

Pair sample_with_hooks() {
  std::string directory = (std::filesystem::temp_directory_path() / "longhaul_bench.XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) throw std::runtime_error("cannot make " + directory);
  BareTraining bare;
  auto monitored = std::make_unique<MonitoredTraining>(directory);
  const Pair pair = run_in_turns(*monitored, bare);
  monitored.reset();
  std::filesystem::remove_all(directory);
  return pair;
}

Pair sample_without_hooks() {
  BareTraining bare;
  MonitoredTraining monitored("");
  return run_in_turns(monitored, bare);
}

Row monitored_row(const std::string& name, const std::string& what, Pair (*sample)()) {
  return {.name = "monitored/" + name,
          .what = what,
          .unit = "steps/s",
          .goal = 0.98,
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
  rows.push_back(
      monitored_row("no_hooks", "small steps of a MonitoredSession, beside the bare session's", sample_without_hooks));
  rows.push_back(monitored_row("default_hooks",
                               "small steps with all hooks as they are by default, beside the bare session's",
                               sample_with_hooks));
}

}  // namespace longhaul::bench
