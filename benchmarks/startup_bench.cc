// How long from the start of the example to its first step, and from its end by a kill to its first new step, beside
// the start of an empty program that links libtorch? And how long does the command `longhaul` take, beside an empty
// program?
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchmarks/benchmarks.h"
#include "benchmarks/child.h"
#include "benchmarks/disk_limit.h"
#include "examples/idx_dataset.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::bench {
namespace {

double seconds_until(const std::vector<std::string>& command, const std::string& text) {
  return time_seconds([&] {
    Child child(command);
    child.read_until(text);
  });
}

// Of the example's progress: it has made a first step.
constexpr char kFirstLine[] = " of 8000";

Pair sample_start(bool with_checkpoint) {
  const testing::TemporaryDirectory directory;
  const std::vector<std::string> train = {FASHION_MNIST_PROGRAM, "--logdir=" + directory.path() + "/run",
                                          "--threads=1"};
  if (with_checkpoint) {
    std::vector<std::string> short_run = train;
    short_run.push_back("--steps=10");
    Child(short_run).read_until("done step=10");
  }
  Pair pair;
  pair.ours = seconds_until(train, kFirstLine);
  pair.beside = seconds_until({EMPTY_TORCH_PROGRAM}, "");
  return pair;
}

double data_seconds() {
  return time_seconds([] {
    auto train = examples::load_images_in_background(examples::kFashionMnistDirectory, "train");
    auto test = examples::load_images_in_background(examples::kFashionMnistDirectory, "t10k");
    train.get();
    test.get();
  });
}

// From the kill of a training to the first new step of the one that goes on. Beside it, what no checkpoint is needed
// for: the start of a process with libtorch, and the data that the example reads before its first step; and the disk's
// read of the checkpoint.
Pair sample_kill_to_step() {
  const testing::TemporaryDirectory directory;
  const std::string logdir = directory.path() + "/run";
  const std::vector<std::string> train = {FASHION_MNIST_PROGRAM, "--logdir=" + logdir, "--threads=1"};
  std::vector<std::string> short_run = train;
  short_run.push_back("--steps=10");
  Child(short_run).read_until("done step=10");
  Child killed(train);
  killed.read_until(kFirstLine);
  std::unique_ptr<Child> again;  // ends after the measurement
  const double first_step = time_seconds([&] {
    killed.end();
    again = std::make_unique<Child>(train);
    again->read_until(kFirstLine);
  });
  again.reset();
  const double process = seconds_until({EMPTY_TORCH_PROGRAM}, ""), data = data_seconds();
  const double disk = direct_read_seconds(logdir, "model.ckpt-10.");
  fmt::print(stderr,
             "  kill to first new step {:.3f} s: process start {:.3f} (of an empty program), data {:.3f}, graph, lock, "
             "restore and step {:.3f} (the checkpoint's direct read {:.4f})\n",
             first_step, process, data, first_step - process - data, disk);
  return {first_step, process + data + disk};
}

std::string longhaul_program() {
  const std::string program = LONGHAUL_PROGRAM;
  if (program.empty()) throw std::runtime_error("the program longhaul is not built (LONGHAUL_TOOLS)");
  return program;
}

// In milliseconds.
Pair sample_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {longhaul_program()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return {1e3 * seconds_until(command, ""), 1e3 * seconds_until({"/bin/true"}, "")};
}

// Of a training of ten steps, with its journal and a checkpoint.
std::function<Pair()> sample_status() {
  return [directory = std::shared_ptr<testing::TemporaryDirectory>()]() mutable {
    if (directory == nullptr) {
      directory = std::make_shared<testing::TemporaryDirectory>();
      Child({FASHION_MNIST_PROGRAM, "--logdir=" + directory->path(), "--threads=1", "--steps=10"})
          .read_until("done step=10");
    }
    return sample_command({"status", directory->path()});
  };
}

}  // namespace

void add_startup_rows(std::vector<Row>& rows) {
  rows.push_back({.name = "startup/fresh",
                  .what = "start of the example to its first step, compared with an empty program with libtorch",
                  .unit = "s",
                  .goal = 0.3,
                  .bound = Bound::kAtMostMore,
                  .sample = [] { return sample_start(false); },
                  .samples = 9});
  rows.push_back({.name = "startup/restored",
                  .what = "the same with a checkpoint to restore",
                  .unit = "s",
                  .goal = 0.3,
                  .bound = Bound::kAtMostMore,
                  .sample = [] { return sample_start(true); },
                  .samples = 9});
  rows.push_back(
      {.name = "startup/kill_to_step",
       .what =
           "from a kill to the first new step, compared with an empty program plus reading the data and the checkpoint",
       .unit = "s",
       .goal = 0.05,
       .bound = Bound::kAtMostMore,
       .sample = sample_kill_to_step,
       .samples = 9});
  rows.push_back({.name = "startup/longhaul_version",
                  .what = "longhaul --version from start to end, compared with an empty program",
                  .unit = "ms",
                  .goal = 20,
                  .bound = Bound::kAtMostMore,
                  .sample = [] { return sample_command({"--version"}); },
                  .samples = 21});
  rows.push_back({.name = "startup/longhaul_status",
                  .what = "longhaul status of one directory from start to end, compared with an empty program",
                  .unit = "ms",
                  .goal = 20,
                  .bound = Bound::kAtMostMore,
                  .sample = sample_status(),
                  .samples = 21});
}

}  // namespace longhaul::bench
