#include "longhaul/binding/overlap/overlap_fixture.h"

namespace longhaul {

void LateCopier::copy(PendingCopy& copy) {
  const MutexLock lock(mutex_);
  ++asked_;
  changed_.notify_all();
  while (!may_copy_) changed_.wait(mutex_);
  while (copy.copy_next()) continue;
}

void LateCopier::wait_until_asked(const std::future<std::vector<Tensor>>& snapshot, int times) {
  const MutexLock lock(mutex_);
  while (asked_ < times) {
    ASSERT_NE(snapshot.wait_for(std::chrono::seconds(0)), std::future_status::ready) << "it ended without a late copy";
    changed_.wait_for(mutex_, Seconds{0.01});
  }
}

void LateCopier::let_copy(bool may) {
  const MutexLock lock(mutex_);
  may_copy_ = may;
  changed_.notify_all();
}

int LateCopier::asked() {
  const MutexLock lock(mutex_);
  return asked_;
}

OverlappedProgram::OverlappedProgram(const Step& its_step, const MakeOptimizer& make_optimizer,
                                     const TorchTrainingOptions& options, int64_t width)
    : step(its_step) {
  torch::manual_seed(1);
  net = torch::nn::Sequential(torch::nn::Linear(width, 512), torch::nn::BatchNorm1d(512));
  optimizer = make_optimizer(net->parameters());
  weight = net->parameters()[0];
  const auto bound = std::make_shared<BoundTorch>(*net, [this](PendingCopy& copy) { copier.copy(copy); });
  const auto one_step = [this](const TorchStep&) {
    step(*this);
    return torch::zeros({});
  };
  training = torch_training_of(bound, Scope(graph), *net, {optimizer.get()}, one_step, options);
  const Operation init = ops::global_variables_initializer(Scope(graph));
  for (const VariableInfo& variable : ops::global_variables(graph)) fetches.emplace_back(variable.read);
  session = std::make_unique<DirectSession>(graph, SessionOptions{});
  session->run(init);
}

torch::Tensor OverlappedProgram::backward() {
  const torch::Tensor loss = net->forward(torch::randn({4, weight.size(1)})).square().sum();
  loss.backward();
  return loss;
}

void OverlappedProgram::update() {
  optimizer->zero_grad();
  backward();
  optimizer->step();
}

void OverlappedProgram::train(int steps) {
  for (int i = 0; i < steps; ++i) session->run(training.train_op);
}

OverlappedProgram::Values OverlappedProgram::state() {
  return session->run(fetches);
}

std::future<OverlappedProgram::Values> OverlappedProgram::start_snapshot() {
  return std::async(std::launch::async, [this] { return session->run(fetches, {}, {.snapshot = true}); });
}

OverlappedProgram::Values OverlappedProgram::snapshot() {
  copier.let_copy();
  Values values = start_snapshot().get();
  copier.let_copy(false);
  return values;
}

void OverlappedProgram::prove() {
  train();
  snapshot();
  train();
}

void expect_same(const OverlappedProgram::Values& a, const OverlappedProgram::Values& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(identical(a[i], b[i])) << "value " << i;
}

}  // namespace longhaul
