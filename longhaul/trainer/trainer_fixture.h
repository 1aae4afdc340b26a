#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/data/dataloader.h>
#include <torch/data/datasets/base.h>
#include <torch/data/datasets/map.h>
#include <torch/data/samplers/random.h>
#include <torch/data/transforms/stack.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/optim/adam.h>
#include <torch/optim/schedulers/step_lr.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "longhaul/base/log.h"
#include "longhaul/base/mutex.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/trainer/trainer.h"

namespace longhaul {

// What is logged while this lives, by any thread.
class Logged {
 public:
  Logged();
  ~Logged();
  Logged(const Logged&) = delete;

  std::vector<std::string> all() const EXCLUDES(mutex_);
  // Without what a process is told of once about its processor, and what a test loses on purpose.
  std::vector<std::string> warnings() const EXCLUDES(mutex_);

 private:
  void add(LogLevel level, const std::string& text) EXCLUDES(mutex_);

  mutable Mutex mutex_;
  std::vector<std::string> all_ GUARDED_BY(mutex_), warnings_ GUARDED_BY(mutex_);
  const LogSink before_;
};

struct Points : torch::data::datasets::Dataset<Points> {
  torch::data::Example<> get(size_t index) override;
  torch::optional<size_t> size() const override { return 12; }
};

inline auto shuffling_loader(size_t batch = 4) {
  return torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      Points().map(torch::data::transforms::Stack<>()), torch::data::DataLoaderOptions(batch));
}

// A program that is started anew each time, as a process is.
struct Program {
  explicit Program(const std::string& directory, TrainerOptions options = {});

  void step(const torch::Tensor& examples);
  void step();

  // Ends the run after this step: as a signal does, or as a crash behind a checkpoint of this step does.
  void stop_at(int64_t cut);
  void crash_after(int64_t cut);
  void save();

  std::vector<at::Tensor> state();

  torch::nn::Sequential net{nullptr};
  std::unique_ptr<torch::optim::Adam> optimizer;
  std::unique_ptr<torch::optim::StepLR> scheduler;
  torch::Tensor seen = torch::zeros({});
  int64_t count = 0;
  std::mt19937 dice{7};
  at::Generator own = at::make_generator<at::CPUGeneratorImpl>(3);
  std::unique_ptr<Trainer> trainer;
};

// The error with which the program's last run has ended.
std::string error_of(const Program& program);

class TrainerTest : public ::testing::Test {
 protected:
  using Body = std::function<void(Program&)>;

  static void expect_same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b, const std::string& what);

  std::string fresh(const std::string& name) { return directory_.file(name); }

  // A run that is cut after any step, by a stop and by a crash, ends as one that is not.
  void expect_exact(const Body& body, int64_t steps);

  const testing::TemporaryDirectory directory_;
};

}  // namespace longhaul
