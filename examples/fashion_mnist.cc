// Trains a classifier on Fashion-MNIST under a Supervisor. Kill it at any moment and start it again: it goes on where
// it was.

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <optional>

#include "examples/batches.h"
#include "examples/classifier.h"
#include "examples/idx_dataset.h"
#include "examples/say.h"
#include "examples/training_options.h"
#include "longhaul/longhaul.h"

namespace lh = longhaul;
using namespace longhaul::examples;

namespace {

struct Data {
  ImageDataset train, test;
};

// Buffers for the feeds of one run.
struct Feed {
  explicit Feed(int64_t batch_size) : images(lh::kFloat, {batch_size, 28 * 28}), labels(lh::kInt64, {batch_size}) {}
  lh::Tensor images, labels;
  float* pixels() { return images.mutable_flat<float>().data(); }
  int64_t* classes() { return labels.mutable_flat<int64_t>().data(); }
};

struct Outcome {
  int64_t first_step = 0, step = 0;
  double accuracy = 0, steps_per_second = 0;
};

// Steps until the last one or a stop. Each runs on the batch that belongs to its number, so a training that starts
// again sees what it would have seen.
void train(lh::Supervisor& sv, lh::Session& session, const Classifier& net, const Data& data,
           const TrainingOptions& options, Outcome* outcome) {
  lh::DataLoader loader(std::make_shared<ImageExamples>(data.train),
                        {.batch_size = options.batch_size, .seed = static_cast<int64_t>(options.seed), .prefetch = 4});
  const lh::Callable train_step = session.make_callable(net.train_op, {net.images, net.labels});
  int64_t step = outcome->first_step;
  const auto start = std::chrono::steady_clock::now();
  for (; step < options.steps && !sv.should_stop(); ++step) {
    const lh::Batch batch = loader.at(step * loader.stride());
    train_step(batch[0], batch[1]);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  outcome->steps_per_second = static_cast<double>(step - outcome->first_step) / seconds.count();
  outcome->step = step;
}

double test_accuracy(lh::Session& session, const Classifier& net, const ImageDataset& test) {
  constexpr int64_t kBatch = 500;
  const lh::Callable count = session.make_callable(net.num_correct, {net.images, net.labels});
  int64_t correct = 0;
  for (int64_t first = 0; first < test.count; first += kBatch) {
    const int64_t size = std::min(kBatch, test.count - first);
    Feed feed(size);
    fill_range(test, first, size, feed.pixels(), feed.classes());
    correct += count(feed.images, feed.labels)[0].item<int64_t>();
  }
  return static_cast<double>(correct) / static_cast<double>(test.count);
}

// What went on, in one line for scripts.
void report(const lh::Supervisor& sv, const Outcome& outcome) {
  say("done step={} restored_from={} test_accuracy={:.4f} steps_per_sec={:.1f} checkpoint={}\n", outcome.step,
      outcome.first_step, outcome.accuracy, outcome.steps_per_second, sv.saver()->last_checkpoint().value_or("none"));
}

int run(const LocalOptions& options) {
  lh::Preemption preemption;  // SIGTERM, SIGHUP, SIGUSR1: save, end with 75; SIGINT: save, end; SIGUSR2: save, go on
  auto loading_train = load_images_in_background(options.data_dir, "train");
  auto loading_test = load_images_in_background(options.data_dir, "t10k");
  lh::set_intra_op_threads(options.threads);

  lh::Graph graph;
  graph.set_seed(options.seed);
  lh::record_option("batch_size", std::to_string(options.batch_size));
  const lh::Scope root = lh::Scope(graph).with_device(options.device);
  const Classifier net = build_classifier(root, {options.model, options.optimizer, options.learning_rate});
  lh::Supervisor sv({.graph = &graph,
                     .logdir = options.logdir,
                     .save_summaries_secs = lh::Seconds{options.save_summaries_secs},
                     .save_model_secs = lh::Seconds{options.save_model_secs},
                     .chief = {.status = {.last_step = options.steps}, .preemption = &preemption},
                     .services = {.digest_every_n_steps = options.digest_steps,
                                  .progress = lh::ProgressOptions{.values = {{"loss", net.loss}}}}});
  const Data data{loading_train.get(), loading_test.get()};

  Outcome outcome;
  sv.managed_session([&](lh::Session& session) {
    outcome.first_step = session.run(net.step).item<int64_t>();
    train(sv, session, net, data, options, &outcome);
    outcome.accuracy = test_accuracy(session, net, data.test);
  });
  report(sv, outcome);
  return preemption.exit_status();
}

}  // namespace

int main(int argc, char** argv) {
  const auto parsed = parse_options(argc, argv);
  if (parsed.exit_status >= 0) return parsed.exit_status;
  try {
    return run(parsed.options);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fputs(fmt::format("fashion_mnist: {}\n", error.what()).c_str(), stderr);
    return 1;
  }
}
