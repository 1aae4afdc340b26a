// A training with random numbers of every kind in each step, which exact_resume_test.cc kills and starts again, and the
// soak disturbs in every way:
//
//   exact_resume_program DIRECTORY STEPS [WIDTH]
//
// It prints the step that it begins with, and every tenth. WIDTH is that of its hidden layer. A stop signal ends it
// with status 75. What it does to itself:
//
//   LONGHAUL_FAULTS=PLAN        its files are under these faults
//   EXACT_RESUME_PAUSE=MS       it sleeps so long before its first step
//   EXACT_RESUME_CRASH=write:N  after N of its steps it writes where no memory is; abort:N: it aborts
//   EXACT_RESUME_OUTPUT=N       what it prints goes to this descriptor, too
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>

#include "longhaul/longhaul.h"
#include "longhaul/testing/planned_faults.h"

namespace lh = longhaul;
namespace ops = longhaul::ops;

namespace {

constexpr int64_t kExamples = 997, kBatch = 16, kFeatures = 24, kClasses = 5;

// Examples that follow from their numbers, with a noise that follows from where in the training they are seen.
lh::Example example(int64_t index, int64_t position) {
  lh::Tensor features(lh::kFloat, {kFeatures});
  float* values = features.mutable_flat<float>().data();
  for (int64_t i = 0; i < kFeatures; ++i) {
    const uint64_t bits = static_cast<uint64_t>(index * kFeatures + i + position) * 0x9e3779b97f4a7c15u;
    values[i] = static_cast<float>(bits >> 40) / static_cast<float>(1 << 24) - 0.5f;
  }
  return {features, lh::Tensor::scalar<int64_t>(index % kClasses)};
}

lh::Operation build(const lh::Scope& root, lh::DataLoader* loader, int64_t width) {
  const ops::LoadedBatch input = ops::load_batch(root, loader);
  const lh::Output noisy = input.components[0] + ops::randn(root, {kBatch, kFeatures}, lh::kFloat, "noise") * 0.05;
  const lh::Output hidden = ops::dropout(root, ops::relu(root, ops::dense(root, noisy, width, "hidden")), 0.3);
  const lh::Output logits = ops::dense(root, hidden, kClasses, "logits");
  const lh::Output loss = ops::cross_entropy_loss(root, logits, input.components[1]);
  lh::summary::scalar(root, "loss", loss);
  lh::summary::histogram(root, "hidden_histogram", hidden);
  return ops::group(root, {lh::AdamOptimizer(0.002).minimize(loss, ops::global_step(root)), input.advance});
}

// Without the hooks, to which this would be a run of the training.
int64_t step_now(const lh::StepContext& context) {
  return context.session().run("global_step:0").item<int64_t>();
}

std::string environment(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

void print(int64_t step) {
  static const int another = std::atoi(environment("EXACT_RESUME_OUTPUT").c_str());
  const std::string line = fmt::format("{}\n", step);
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
  if (another > 0 && ::write(another, line.data(), line.size()) < 0) throw lh::UnknownError("cannot report the step");
}

void pause() {
  const int milliseconds = std::atoi(environment("EXACT_RESUME_PAUSE").c_str());
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

// `steps`: how many this process has made.
void crash_if_due(int64_t steps) {
  static const std::string plan = environment("EXACT_RESUME_CRASH");
  if (plan == fmt::format("abort:{}", steps)) std::abort();
  volatile int* volatile nowhere = nullptr;
  if (plan == fmt::format("write:{}", steps)) *nowhere = 1;
}

void train(const std::string& directory, int64_t steps, int64_t width, lh::Preemption* preemption) {
  lh::set_intra_op_threads(1);
  lh::Graph graph;
  graph.set_seed(3);
  lh::DataLoader loader(lh::make_dataset(kExamples, example),
                        {.batch_size = kBatch, .seed = 7, .num_threads = 2, .prefetch = 4});
  const lh::Operation step = build(lh::Scope(graph), &loader, width);
  const auto digests =
      std::make_shared<lh::WeightDigestHook>(lh::WeightDigestHookOptions{.every_n_steps = 20, .output_dir = directory});
  lh::monitored_training_session({.graph = &graph,
                                  .checkpoint_dir = directory,
                                  .hooks = {digests},
                                  .save_checkpoint_steps = 100,
                                  .save_summaries_steps = 10,
                                  .log_step_count_steps = 0,
                                  .chief = {.preemption = preemption},
                                  .files = &lh::testing::file_system_from_environment()},
                                 [&](lh::MonitoredSession& session) {
                                   const int64_t begin = session.run_step_fn(step_now);
                                   print(begin);
                                   pause();
                                   for (int64_t at = begin; at < steps && !session.should_stop();) {
                                     session.run(step);
                                     if (++at % 10 == 0) print(at);
                                     crash_if_due(at - begin);
                                   }
                                 });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) return 2;
  try {
    lh::Preemption preemption;
    train(argv[1], std::atoll(argv[2]), argc == 4 ? std::atoll(argv[3]) : 48, &preemption);
    return preemption.exit_status();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
