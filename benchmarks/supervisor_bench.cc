// What do the Supervisor's services cost the training? Steps per second with them beside the bare loop, in turns. And
// how long does a snapshot wait while threads train?
#include <atomic>
#include <thread>

#include "benchmarks/benchmarks.h"
#include "benchmarks/files.h"
#include "examples/classifier.h"
#include "longhaul/longhaul.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::bench {
namespace {

constexpr int64_t kBatch = 64;

struct Services {
  double save_model_secs, save_summaries_secs;
};

Tensor random_images() {
  Tensor images(kFloat, {kBatch, 784});
  for (float& value : images.mutable_flat<float>())
    value = static_cast<float>(std::rand()) / static_cast<float>(RAND_MAX);
  return images;
}

Tensor random_labels() {
  Tensor labels(kInt64, {kBatch});
  for (int64_t& value : labels.mutable_flat<int64_t>()) value = std::rand() % 10;
  return labels;
}

// Steps per second of the example's network over `seconds`, under a Supervisor; without a logdir it has no services.
double train_for(double seconds, const std::string& logdir, const Services& services) {
  Graph graph;
  graph.set_seed(1);
  const auto net = examples::build_classifier(graph, {});
  Supervisor sv({.graph = &graph,
                 .logdir = logdir,
                 .save_summaries_secs = Seconds{services.save_summaries_secs},
                 .save_model_secs = Seconds{services.save_model_secs},
                 .services = {.save_at_end = false}});
  const Tensor images = random_images(), labels = random_labels();
  double rate = 0;
  sv.managed_session(
      [&](Session& session) {
        const Callable step = session.make_callable(net.train_op, {net.images, net.labels});
        int64_t steps = 0;
        const double taken = time_seconds([&] {
          const Seconds end = Clock::real().now() + Seconds{seconds};
          while (Clock::real().now() < end) {
            step(images, labels);
            ++steps;
          }
        });
        rate = static_cast<double>(steps) / taken;
      },
      {.start_standard_services = !logdir.empty()});
  return rate;
}

Pair sample_services(double seconds, const Services& services) {
  set_intra_op_threads(1);
  const testing::TemporaryDirectory directory;
  Pair pair;
  pair.beside = train_for(seconds, "", {0, 0});
  pair.ours = train_for(seconds, directory.path(), services);
  return pair;
}

// Microseconds that a snapshot of the whole model takes while eight threads train, and while nobody does.
Pair sample_snapshot() {
  constexpr int kSnapshots = 200;
  set_intra_op_threads(1);
  Graph graph;
  const auto net = examples::build_classifier(graph, {});
  const Operation init = ops::global_variables_initializer(Scope(graph));
  std::vector<Fetch> variables;
  for (const VariableInfo& variable : ops::global_variables(graph)) variables.emplace_back(variable.read);
  const auto session = new_session("", graph);
  session->run(init);
  const Callable step = session->make_callable(net.train_op, {net.images, net.labels});
  const Tensor images = random_images(), labels = random_labels();
  const auto snapshots = [&] {
    std::vector<double> times;
    for (int i = 0; i < kSnapshots; ++i) {
      times.push_back(time_seconds([&] { session->run(variables, {}, {.snapshot = true}); }) * 1e6);
    }
    return median(times);
  };
  Pair pair;
  pair.beside = snapshots();
  std::atomic<bool> stop{false};
  std::vector<std::thread> training;
  for (int i = 0; i < 8; ++i) {
    training.emplace_back([&] {
      while (!stop.load()) step(images, labels);
    });
  }
  pair.ours = snapshots();
  stop = true;
  for (std::thread& thread : training) thread.join();
  return pair;
}

}  // namespace

void add_supervisor_rows(std::vector<Row>& rows) {
  rows.push_back({.name = "supervisor/default_services",
                  .what = "steps with all services at their defaults, compared with the bare loop",
                  .unit = "steps/s",
                  .goal = 0.99,
                  .forgive_noise = true,
                  .sample = [] { return sample_services(3, {600, 120}); },
                  .samples = 9});
  rows.push_back({.name = "supervisor/busy_services",
                  .what = "steps with a checkpoint every 5 s and summaries every second, compared with the bare loop",
                  .unit = "steps/s",
                  .goal = 0.97,
                  .forgive_noise = true,
                  .sample = [] { return sample_services(11, {5, 1}); },
                  .samples = 5});
  rows.push_back({.name = "supervisor/snapshot",
                  .what = "a snapshot of the model while eight threads train, compared with one while none does",
                  .unit = "us",
                  .goal = 1000,
                  .bound = Bound::kAtMostMore,
                  .sample = sample_snapshot,
                  .goal_ours = 1000});
}

}  // namespace longhaul::bench
