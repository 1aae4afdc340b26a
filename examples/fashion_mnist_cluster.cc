// Trains a classifier on Fashion-MNIST on a cluster: each task runs this program. Kill any of them at any moment and
// start it again: the training goes on. examples/cluster.sh starts a cluster on one machine.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "examples/batches.h"
#include "examples/classifier.h"
#include "examples/cluster_task.h"
#include "examples/idx_dataset.h"
#include "examples/say.h"
#include "longhaul/longhaul.h"
#include "longhaul/server.h"

namespace lh = longhaul;
using namespace longhaul::examples;

namespace {

// A ps keeps its part of the model until it is stopped.
int serve(lh::Server& server) {
  server.join();
  return 0;
}

// What a replica runs: a step of the model, which also counts what the replica has seen.
struct Replica {
  Classifier net;
  lh::Variable batches_seen;  // by this replica; restored with the model, so that no batch is left out or taken twice
  lh::Operation train_op;
};

// The variables are spread over the ps tasks, all else is on this task. Every task builds the same variables in the
// same order, those of the other replicas too: so each variable is on the same ps for all, and the chief saves it.
Replica build_replica(lh::Graph& graph, const lh::LaunchedTask& task, const TrainingOptions& options) {
  const std::string own = fmt::format("/job:{}/task:{}", task.job, task.index);
  const lh::Scope root =
      lh::Scope(graph).with_device(lh::replica_device_setter({.worker_device = own, .cluster = task.cluster}));
  Replica replica{.net = build_classifier(root, {options.model, options.optimizer, options.learning_rate})};
  const Share share = share_of(task);
  std::vector<lh::Variable> seen;
  for (int i = 0; i < share.of; ++i) {
    seen.push_back(lh::ops::variable(root, fmt::format("batches_seen_{}", i), lh::Tensor::scalar<int64_t>(0),
                                     {.trainable = false}));
  }
  replica.batches_seen = seen.at(static_cast<size_t>(share.number));
  const lh::Output count =
      lh::ops::assign_add(root, replica.batches_seen, lh::ops::constant(root, lh::Tensor::scalar<int64_t>(1)));
  replica.train_op = lh::ops::group(root, {replica.net.train_op, count.op()}, "replica_step");
  return replica;
}

struct Outcome {
  int64_t first_step = 0, step = 0;  // of the model
  int64_t own_steps = 0;             // made by this process
  double accuracy = 0;
};

class Training {
 public:
  Training(const ClusterOptions& options, const lh::LaunchedTask& task)
      : options_(options),
        share_(share_of(task)),
        train_(load_images_in_background(options.data_dir, "train").share()),
        test_(load_images_in_background(options.data_dir, "t10k").share()) {}

  // Steps until the model has made the last one, or a stop.
  void train(lh::Supervisor& sv, lh::Session& session, const Replica& replica) {
    lh::DataLoader loader(std::make_shared<ImageExamples>(train_.get()), {.batch_size = options_.batch_size,
                                                                          .seed = static_cast<int64_t>(options_.seed),
                                                                          .num_replicas = share_.of,
                                                                          .replica = share_.number,
                                                                          .prefetch = 4});
    const Classifier& net = replica.net;
    const lh::Callable step_and_tell =
        session.make_callable(std::vector<lh::Fetch>{replica.train_op, net.step}, {net.images, net.labels});
    int64_t seen = session.run(replica.batches_seen).item<int64_t>();
    outcome_.first_step = outcome_.step = session.run(net.step).item<int64_t>();
    while (outcome_.step < options_.steps && !sv.should_stop()) {
      const lh::Batch batch = loader.at(seen++ * loader.stride());
      const std::vector<lh::Tensor> told = step_and_tell(batch[0], batch[1]);
      ++outcome_.own_steps;
      outcome_.step = told[1].item<int64_t>() + 1;  // a run reads what was there before it
    }
  }

  void test(lh::Session& session, const Classifier& net) {
    const ImageDataset& test = test_.get();
    constexpr int64_t kBatch = 500;
    const lh::Callable count = session.make_callable(net.num_correct, {net.images, net.labels});
    int64_t correct = 0;
    for (int64_t first = 0; first < test.count; first += kBatch) {
      const int64_t size = std::min(kBatch, test.count - first);
      lh::Tensor images(lh::kFloat, {size, 28 * 28}), labels(lh::kInt64, {size});
      fill_range(test, first, size, images.mutable_flat<float>().data(), labels.mutable_flat<int64_t>().data());
      correct += count(images, labels)[0].item<int64_t>();
    }
    outcome_.accuracy = static_cast<double>(correct) / static_cast<double>(test.count);
  }

  const Outcome& outcome() const { return outcome_; }

 private:
  const ClusterOptions& options_;
  const Share share_;
  std::shared_future<ImageDataset> train_, test_;
  Outcome outcome_;
};

// What went on, in one line for scripts.
void report(const lh::Supervisor& sv, const Outcome& outcome) {
  if (!sv.is_chief()) return say("done step={} own_steps={}\n", outcome.step, outcome.own_steps);
  say("done step={} own_steps={} restored_from={} test_accuracy={:.4f} checkpoint={}\n", outcome.step,
      outcome.own_steps, outcome.first_step, outcome.accuracy, sv.saver()->last_checkpoint().value_or("none"));
}

// A session that is lost with a task is replaced, as often as it takes: whoever is not there yet is waited for then.
lh::TrainLoopOptions loop_options(const lh::LaunchedTask& task, const lh::Server* server,
                                  const ClusterOptions& options) {
  return {.session = {.master = server != nullptr ? server->target() : "",
                      .config = {.device_filters = task.device_filters()},
                      .max_wait_secs = lh::Seconds{options.max_wait_secs}},
          .restart = {.max_restarts = std::nullopt, .backoff = lh::Seconds{0.1}, .max_backoff = lh::Seconds{5}}};
}

int train(const lh::LaunchedTask& task, const lh::Server* server, const ClusterOptions& options) {
  lh::Preemption preemption;  // SIGTERM, SIGHUP, SIGUSR1: the chief saves, end with 75; SIGINT: the same with 0
  lh::set_intra_op_threads(options.threads);
  Training training(options, task);
  lh::Graph graph;
  graph.set_seed(options.seed);
  const Replica replica = build_replica(graph, task, options);
  lh::Supervisor sv({.graph = &graph,
                     .is_chief = task.is_chief(),
                     .logdir = options.logdir,
                     .save_summaries_secs = lh::Seconds{options.save_summaries_secs},
                     .save_model_secs = lh::Seconds{options.save_model_secs},
                     .chief = {.status = {.last_step = options.steps}, .preemption = &preemption},
                     .services = {.digest_every_n_steps = options.digest_steps,
                                  .progress = lh::ProgressOptions{.values = {{"loss", replica.net.loss}}}}});
  const auto body = [&](lh::Session& session) {
    training.train(sv, session, replica);
    if (sv.is_chief()) training.test(session, replica.net);
    sv.request_stop();
  };
  lh::basic_train_loop(sv, body, loop_options(task, server, options));
  report(sv, training.outcome());
  return preemption.exit_status();
}

int run(const ClusterOptions& options) {
  const lh::LaunchedTask task = launched_task(options);
  if (task.cluster.empty()) return train(task, nullptr, options);
  lh::Server server(task.cluster, server_options(task, options));
  return task.is_ps() ? serve(server) : train(task, &server, options);
}

}  // namespace

int main(int argc, char** argv) {
  const auto parsed = parse_cluster_options(argc, argv);
  if (parsed.exit_status >= 0) return parsed.exit_status;
  try {
    return run(parsed.options);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fputs(fmt::format("fashion_mnist_cluster: {}\n", error.what()).c_str(), stderr);
    return 1;
  }
}
