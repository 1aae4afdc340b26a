#include "longhaul/binding/torch_fixture.h"

#include "longhaul/runtime/devices/pinned_memory.h"
#include "longhaul/testing/fake_device/fake_device.h"

namespace longhaul {
namespace {

[[maybe_unused]] const bool pins_memory = [] {
  register_pinned_memory(fake_device::device().type(), &fake_device::pinned_memory);
  return true;
}();

}  // namespace

std::unique_ptr<torch::optim::Optimizer> plain_sgd(const std::vector<torch::Tensor>& parameters) {
  return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(0.1));
}

std::unique_ptr<torch::optim::Optimizer> default_adam(const std::vector<torch::Tensor>& parameters) {
  return std::make_unique<torch::optim::Adam>(parameters, torch::optim::AdamOptions(0.01));
}

std::vector<OptimizerCase> optimizer_cases() {
  using namespace torch::optim;
  return {optimizer_case<SGD>("Sgd", SGDOptions(0.1)),
          optimizer_case<SGD>("Momentum", SGDOptions(0.1).momentum(0.9).dampening(0.5).weight_decay(0.01)),
          optimizer_case<SGD>("Nesterov", SGDOptions(0.1).momentum(0.9).nesterov(true)),
          optimizer_case<Adam>("Adam", AdamOptions(0.01)),
          optimizer_case<Adam>("AmsGrad", AdamOptions(0.01).amsgrad(true)),
          optimizer_case<AdamW>("AdamW", AdamWOptions(0.01)),
          optimizer_case<RMSprop>("RmsProp", RMSpropOptions(0.01)),
          optimizer_case<RMSprop>("Centered", RMSpropOptions(0.01).centered(true).momentum(0.9)),
          optimizer_case<Adagrad>("Adagrad", AdagradOptions(0.1).lr_decay(0.01).initial_accumulator_value(0.1))};
}

PlainProgram::PlainProgram(const MakeOptimizer& make_optimizer, int hidden) {
  torch::manual_seed(1);
  net = torch::nn::Sequential(torch::nn::Linear(4, hidden), torch::nn::BatchNorm1d(hidden), torch::nn::Dropout(0.5),
                              torch::nn::Linear(hidden, 2));
  move_to_test_device(*net);
  optimizer = make_optimizer(net->parameters());
}

torch::Tensor PlainProgram::step() {
  optimizer->zero_grad();
  const torch::Tensor examples = torch::randn({16, 4}, test_device());
  const torch::Tensor loss = (net->forward(examples) - examples.narrow(1, 0, 2)).square().mean();
  loss.backward();
  optimizer->step();
  return loss;
}

BoundProgram::BoundProgram(const MakeOptimizer& make_optimizer, int hidden, const TorchTrainingOptions& options)
    : PlainProgram(make_optimizer, hidden) {
  training = torch_training(
      Scope(graph), *net, *optimizer,
      [this](const TorchStep&) {
        const torch::Tensor loss = step();
        if (after_step) after_step();
        return loss;
      },
      options);
  init = ops::global_variables_initializer(Scope(graph));
  saver = std::make_unique<Saver>(SaverOptions{.graph = &graph});
}

BoundProgram& BoundProgram::initialize() {
  session->run(init);
  return *this;
}

BoundProgram& BoundProgram::train(int steps) {
  for (int i = 0; i < steps; ++i) session->run(training.train_op);
  return *this;
}

std::string BoundProgram::save(const std::string& path) {
  return saver->save(*session, path, training.global_step);
}

BoundProgram& BoundProgram::restore(const std::string& prefix) {
  saver->restore(*session, prefix);
  return *this;
}

std::vector<Tensor> BoundProgram::state() {
  std::vector<Fetch> fetches;
  for (const VariableInfo& variable : ops::global_variables(graph)) fetches.emplace_back(variable.read);
  return session->run(fetches, {}, {.snapshot = true});
}

Tensor BoundProgram::get(const std::string& name) {
  return session->run(name + ":0");
}

void expect_same_state(BoundProgram& a, BoundProgram& b) {
  const std::vector<VariableInfo> variables = ops::global_variables(a.graph);
  const std::vector<Tensor> of_a = a.state(), of_b = b.state();
  ASSERT_EQ(of_a.size(), of_b.size());
  for (size_t i = 0; i < of_a.size(); ++i) {
    EXPECT_TRUE(identical(of_a[i], of_b[i]))
        << variables[i].name() << ": " << of_a[i].to_string() << " and " << of_b[i].to_string();
  }
}

}  // namespace longhaul
