// tiny_training MODE DIRECTORY: a training of the tests, with checkpoints every few steps. MODE: exact; forgets, its
// generator is in no checkpoint; anew, it restores nothing; drifts, each run has other numbers; fails; hangs; silent,
// it saves nothing; deaf, as exact, but it leaves SIGTERM alone; epochs, as a Trainer's, which has its position saved,
// and stops after the step that the check names.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <thread>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"

namespace {

constexpr int64_t kSteps = 150, kSaveEvery = 10, kEpoch = 40;

volatile sig_atomic_t stopped = 0;

struct Training {
  std::mt19937 random{1};
  double weight = 0;
  int64_t step = 0;
};

std::string text_of(const std::mt19937& random) {
  std::ostringstream text;
  text << random;
  return text.str();
}

// trainer/position: the numbers of longhaul/trainer/loop_position.h.
longhaul::Tensor position_at(int64_t step) {
  const auto number = [](int64_t count) { return static_cast<double>(count); };
  return longhaul::Tensor::of<double>(
      {0, 0, number(step / kEpoch), 0, 0, number(step % kEpoch), step < kEpoch ? 0 : number(kEpoch), 0, 0, -1, 0, 0});
}

void save(const Training& training, const std::string& directory, bool with_generator, bool with_position) {
  using longhaul::Tensor;
  longhaul::BundleWriter writer(longhaul::FileSystem::real(),
                                directory + "/model.ckpt-" + std::to_string(training.step));
  if (with_generator) writer.add("generators/own", Tensor::scalar(text_of(training.random)));
  writer.add("global_step", Tensor::scalar<int64_t>(training.step));
  if (with_position) writer.add("trainer/position", position_at(training.step));
  writer.add("weight", Tensor::scalar(training.weight));
  writer.finish();
}

void restore(Training* training, const std::string& directory) {
  auto& files = longhaul::FileSystem::real();
  const auto found = longhaul::find_checkpoints(files, directory, "model.ckpt");
  if (found.empty()) return;
  const longhaul::BundleReader reader(files, found.back().prefix);
  training->step = reader.read("global_step").item<int64_t>();
  training->weight = reader.read("weight").item<double>();
  if (reader.has("generators/own")) {
    std::istringstream(reader.read("generators/own").flat<std::string>()[0]) >> training->random;
  }
}

int train(const std::string& mode, const std::string& directory) {
  if (mode == "fails") std::puts("the data is missing");
  if (mode == "fails") return 3;
  if (mode != "deaf") signal(SIGTERM, [](int) { stopped = 1; });
  if (mode == "deaf") signal(SIGTERM, SIG_IGN);
  const bool saves = mode != "silent", with_generator = mode != "forgets", with_position = mode == "epochs";
  const char* const stop = with_position ? std::getenv("LONGHAUL_RESUME_CHECK_STOP_STEP") : nullptr;
  Training training;
  if (mode == "drifts") training.random.seed(std::random_device{}());
  if (mode != "anew") restore(&training, directory);
  while (training.step < kSteps && stopped == 0) {
    // wait: a step takes its time
    std::this_thread::sleep_for(std::chrono::milliseconds(mode == "hangs" ? 100000 : 4));
    training.weight = 0.9 * training.weight + std::uniform_real_distribution<>()(training.random);
    ++training.step;
    if (saves && training.step % kSaveEvery == 0) save(training, directory, with_generator, with_position);
    if (stop != nullptr && training.step == std::stoll(stop)) stopped = 1;
  }
  if (saves) save(training, directory, with_generator, with_position);
  return stopped != 0 ? 75 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const directory = argc > 2 ? argv[2] : std::getenv("LONGHAUL_RESUME_CHECK_DIR");
  if (argc < 2 || directory == nullptr) return 2;
  return train(argv[1], directory);
}
