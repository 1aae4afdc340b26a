// What does supervision cost a training that stays libtorch's own? Steps of a bound module under a Supervisor beside
// the same loop without us, in turns.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

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

// The same with a Trainer, which makes the steps in the program's own loop.
Pair sample_trainer(const MlpShape& shape, int steps) {
  set_intra_op_threads(1);
  const testing::TemporaryDirectory directory;
  const auto bound = module_mlp(shape), unbound = module_mlp(shape);
  const auto trainer = bound->supervise(directory.path());
  const int in_a_turn = steps / kTurns;
  Pair pair;
  const int status = trainer->run([&] {
    for (int turn = 1; turn <= kTurns; ++turn) {
      const double seconds = time_seconds([&] {
        for ([[maybe_unused]] const int64_t step : trainer->steps(int64_t{turn} * in_a_turn)) {
          bound->step();
          trainer->log("loss", bound->last_loss());
        }
      });
      pair.ours += in_a_turn / seconds / kTurns;
      pair.beside += steps_per_second([&] { unbound->step(); }, in_a_turn) / kTurns;
    }
    if (trainer->step() != int64_t{kTurns} * in_a_turn) throw std::runtime_error("the Trainer has left steps out");
  });
  if (status != 0) std::rethrow_exception(trainer->error());
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

constexpr int64_t kGiB = int64_t{1} << 30;

// A training of so many bytes, of which a thread beside it takes snapshots: one while it makes its first three steps,
// which proves its writes and makes the memory, then several more with a step between them.
struct SnapshotsBeside {
  double held_up = 0;      // ms: the median of the snapshots' longest times between two steps, less the usual time
  double step_beside = 0;  // ms: the mean of the steps that followed a snapshot
  double usual_step = 0;   // ms: of the others

  SnapshotsBeside(int64_t bytes, bool overlaps) {
    set_intra_op_threads(1);
    const auto peer = large_adam(bytes);
    Graph graph;
    const Scope root(graph);
    const TorchTraining training = peer->bind(root, overlaps);
    const Operation init = ops::global_variables_initializer(root);
    std::vector<Fetch> variables;
    for (const VariableInfo& variable : ops::global_variables(graph)) variables.emplace_back(variable.read);
    const auto session = new_session("", graph);
    session->run(init);
    const auto take = [&] { session->run(variables, {}, {.snapshot = true}); };
    const auto train = [&](int steps) {
      for (int i = 0; i < steps; ++i) session->run(training.train_op);
    };
    for (int i = 0; i < 3; ++i) {
      std::thread(take).join();
      train(1);
    }
    train(3);
    const std::vector<LargePeer::Step> usual = peer->take_steps();
    const double usual_gap = usual.back().begin - usual[usual.size() - 2].end;
    std::vector<double> gaps, beside, others;
    for (int i = 0; i < kSnapshots; ++i) {
      train(1);
      std::atomic<bool> is_taken = false;
      std::thread snapshot([&] {
        take();
        is_taken = true;
      });
      while (!is_taken) train(1);  // the snapshot waits for the end of a step, and its copies take less than the next
      snapshot.join();
      train(2);
      const std::vector<LargePeer::Step> steps = peer->take_steps();
      size_t longest = 1;
      for (size_t at = 1; at < steps.size(); ++at) {
        if (gap(steps, at) > gap(steps, longest)) longest = at;
      }
      gaps.push_back(gap(steps, longest) - usual_gap);
      beside.push_back(steps[steps.size() - 3].end - steps[steps.size() - 3].begin);
      others.push_back(steps.back().end - steps.back().begin);
    }
    if (!std::isfinite(peer->loss())) throw std::runtime_error("training diverged");
    held_up = median(gaps);
    step_beside = median(beside);
    usual_step = median(others);
  }

 private:
  static constexpr int kSnapshots = 3;
  static double gap(const std::vector<LargePeer::Step>& steps, size_t at) {
    return steps[at].begin - steps[at - 1].end;
  }
};

// What the system can give without swapping; 0: it does not say.
int64_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (int64_t kib = 0; file >> name >> kib; std::getline(file, unit)) {
    if (name == "MemAvailable:") return kib * 1024;
  }
  return 0;
}

void add_stall_rows(std::vector<Row>& rows, const std::string& suffix, int64_t bytes) {
  if (available_bytes() < 4 * bytes) return;  // the state, a copy of it, gradients, and room
  rows.push_back(
      {.name = "bound/snapshot_stall" + suffix,
       .what = "how long a snapshot holds up a bound training, compared with copies while it waits",
       .unit = "ms",
       .goal = 0.05,
       .bound = Bound::kAtMost,
       .sample = [=] { return Pair{SnapshotsBeside(bytes, true).held_up, SnapshotsBeside(bytes, false).held_up}; },
       .samples = 2,
       .goal_ours = 1});
  rows.push_back({.name = "bound/step_beside_snapshot" + suffix,
                  .what = "a step beside the copies of a snapshot, compared with other steps of that training",
                  .unit = "ms",
                  .goal = 1.05,
                  .bound = Bound::kAtMost,
                  .forgive_noise = true,
                  .sample =
                      [=] {
                        const SnapshotsBeside training(bytes, true);
                        return Pair{training.step_beside, training.usual_step};
                      },
                  .samples = 2});
}

}  // namespace

void add_bound_rows(std::vector<Row>& rows) {
  const auto add = [&](const std::string& name, const char* what, double goal, const std::function<Pair()>& sample) {
    rows.push_back({.name = "bound/" + name,
                    .what = what,
                    .unit = "steps/s",
                    .goal = goal,
                    .forgive_noise = true,
                    .sample = sample,
                    .samples = 9});
  };
  const MlpShape large{64, {784, 256, 128, 10}}, small{32, {64, 32, 10}};
  const char* const bound = "steps of a bound libtorch module under a Supervisor, compared with the unbound loop";
  add("mlp_784_256_128_10", bound, 0.99, [=] { return sample_bound(large, 1500); });
  add("mlp_64_32_10", bound, 0.95, [=] { return sample_bound(small, 10000); });
  const char* const own = "steps of a libtorch module in a Trainer's loop, compared with the loop without one";
  add("trainer_mlp_784_256_128_10", own, 0.95, [=] { return sample_trainer(large, 1500); });
  add("trainer_mlp_64_32_10", own, 0.95, [=] { return sample_trainer(small, 10000); });
  rows.push_back({.name = "bound/snapshot",
                  .what = "a snapshot of 30 million bound floats, compared with a copy of as many",
                  .unit = "ms",
                  .goal = 1.5,
                  .bound = Bound::kAtMost,
                  .sample = sample_bound_snapshot});
  add_stall_rows(rows, "", kGiB);
  add_stall_rows(rows, "_3GiB", 3 * kGiB);
}

}  // namespace longhaul::bench
