#pragma once

#include <torch/data/samplers/random.h>
#include <torch/optim/schedulers/step_lr.h>

#include "longhaul/base/log.h"
#include "longhaul/binding/keep_random_state.h"
#include "longhaul/binding/optimizer_kind.h"
#include "longhaul/binding/torch_fixture.h"

namespace longhaul {

// The warnings that the library gives while this lives.
class Warnings {
 public:
  Warnings();
  ~Warnings();
  Warnings(const Warnings&) = delete;
  const std::vector<std::string>& seen() const { return seen_; }

 private:
  std::vector<std::string> seen_;
  const LogSink before_;
};

// A program of libtorch's, with the parts that a test gives it. To start it again is to make another one.
struct Trial {
  virtual ~Trial() = default;
  Trial();

  // On test_device(), wherever the examples are.
  torch::Tensor loss_of(const torch::Tensor& from_host);
  torch::Tensor update(const torch::Tensor& loss) const;

  // With its optimizer, or with none.
  Trial& bind(const TorchTrainingOptions& options = {}, bool with_optimizer = true);

  // From the checkpoint `prefix`, or afresh. Returns the number of steps made.
  int64_t start(const std::string& prefix = "");
  void train(int steps = 1);
  std::string save(const std::string& path);

  torch::nn::Sequential net{nullptr};
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::function<torch::Tensor(const TorchStep&)> step;
  Graph graph;
  TorchTraining training;
  Operation init;
  std::unique_ptr<Saver> saver;
  DirectSession session{graph, SessionOptions{}};
};

// Computes gradients in each step, and leaves the update to others.
std::unique_ptr<Trial> without_update();

// Updates in every fourth step, by the gradients of four.
std::unique_ptr<Trial> gathering(const TorchTrainingOptions& options);

// Makes the steps from `first` to `last`, as the program's own loop does.
using Loop = std::function<void(Trial& trial, int64_t first, int64_t last)>;

void plain_loop(Trial& trial, int64_t first, int64_t last);

class TorchResumeTest : public ::testing::Test {
 protected:
  static constexpr int64_t kSteps = 12;

  using Make = std::function<std::unique_ptr<Trial>()>;
  static std::unique_ptr<Trial> plain();

  // The parameters at the end of a training that is stopped behind step `cut` and started again; 0: of one that is not.
  std::vector<at::Tensor> end_of(const Make& make, const Loop& loop, int64_t cut = 0);
  static bool equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b);
  void expect_exact(const Make& make, const Loop& loop);

  const testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.file("model");
};

class TorchFindingsTest : public TorchResumeTest {
 protected:
  // What is said in a training from its begin to its end.
  std::vector<std::string> warnings_of(const Make& make, const Loop& loop = plain_loop, int64_t cut = 0);
};

}  // namespace longhaul
