#pragma once

#include <torch/nn/modules/batchnorm.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/binding/bound_torch.h"
#include "longhaul/binding/torch_fixture.h"
#include "longhaul/binding/torch_resume_fixture.h"

namespace longhaul {

// Copies what a snapshot has left when a test lets it, which is after the steps that write to it.
class LateCopier {
 public:
  void copy(PendingCopy& copy);

  // Fails if the snapshot ends without asking, so that no test waits for ever.
  void wait_until_asked(const std::future<std::vector<Tensor>>& snapshot, int times = 1);
  void let_copy(bool may = true);
  int asked();

 private:
  Mutex mutex_;
  CondVar changed_;
  int asked_ = 0;
  bool may_copy_ = false;
};

// A program whose weight is large enough to come later in a snapshot: 2 MiB; a batch norm's statistics do not.
struct OverlappedProgram {
  using Values = std::vector<Tensor>;
  using Step = std::function<void(OverlappedProgram& program)>;

  explicit OverlappedProgram(const Step& step, const MakeOptimizer& make_optimizer = default_adam,
                             const TorchTrainingOptions& options = {}, int64_t width = 1024);

  torch::Tensor backward();
  void update();  // what a step usually does

  void train(int steps = 1);
  Values state();                        // as it is now
  Values snapshot();                     // by another thread, to its end
  std::future<Values> start_snapshot();  // by another thread, which waits in the copier
  void prove();                          // a step, which makes the optimizer's state, a snapshot, and another step

  LateCopier copier;
  Step step;
  torch::nn::Sequential net{nullptr};
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  torch::Tensor weight;
  Graph graph;
  TorchTraining training;
  std::vector<Fetch> fetches;
  std::unique_ptr<Session> session;
};

void expect_same(const OverlappedProgram::Values& a, const OverlappedProgram::Values& b);

}  // namespace longhaul
