#pragma once

#include <torch/nn/modules/dropout.h>

#include <memory>
#include <string>
#include <vector>

#include "longhaul/binding/torch_resume_fixture.h"
#include "longhaul/testing/fake_device/fake_device.h"

namespace longhaul {

// A bound program on a device, whose steps draw examples and dropout there.
struct DeviceProgram {
  explicit DeviceProgram(c10::Device where, const TorchTrainingOptions& options = {}) : device(where) {
    torch::manual_seed(1);
    fake_device::default_generator(device).set_current_seed(7);
    net = torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::BatchNorm1d(8), torch::nn::Dropout(0.5),
                                torch::nn::Linear(8, 2));
    fake_device::move(*net, device);
    optimizer = default_adam(net->parameters());
    const auto step = [this] {
      optimizer->zero_grad();
      const torch::Tensor examples = torch::randn({16, 4}, device);
      const torch::Tensor loss = (net->forward(examples) - examples.narrow(1, 0, 2)).square().mean();
      loss.backward();
      optimizer->step();
      return loss;
    };
    training = torch_training(Scope(graph), *net, *optimizer, step, options);
    init = ops::global_variables_initializer(Scope(graph));
    saver = std::make_unique<Saver>(SaverOptions{.graph = &graph});
    session = std::make_unique<DirectSession>(graph, SessionOptions{});
  }
  DeviceProgram& initialize() {
    session->run(init);
    return *this;
  }
  DeviceProgram& restore(const std::string& prefix) {
    saver->restore(*session, prefix);
    return *this;
  }
  DeviceProgram& train(int steps) {
    for (int i = 0; i < steps; ++i) session->run(training.train_op);
    return *this;
  }
  std::vector<at::Tensor> weights() const {
    std::vector<at::Tensor> values;
    for (const at::Tensor& parameter : net->parameters()) values.push_back(parameter.detach().cpu());
    return values;
  }

  c10::Device device;
  torch::nn::Sequential net{nullptr};
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  Graph graph;
  TorchTraining training;
  Operation init;
  std::unique_ptr<Saver> saver;
  std::unique_ptr<Session> session;
};

inline void expect_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << i;
}

}  // namespace longhaul
