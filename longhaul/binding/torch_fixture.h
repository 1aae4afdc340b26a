#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <memory>
#include <string>
#include <vector>

#include "longhaul/binding/torch_training.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"
#include "longhaul/testing/fake_device/test_device_fixture.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {

using MakeOptimizer =
    std::function<std::unique_ptr<torch::optim::Optimizer>(const std::vector<torch::Tensor>& parameters)>;

std::unique_ptr<torch::optim::Optimizer> plain_sgd(const std::vector<torch::Tensor>& parameters);
std::unique_ptr<torch::optim::Optimizer> default_adam(const std::vector<torch::Tensor>& parameters);

// Every known kind, with what changes what it keeps.
struct OptimizerCase {
  const char* name;
  MakeOptimizer make;
};

template <typename Optimizer, typename Options>
OptimizerCase optimizer_case(const char* name, const Options& options) {
  return {name, [options](const std::vector<torch::Tensor>& parameters) {
            return std::make_unique<Optimizer>(parameters, options);
          }};
}

std::vector<OptimizerCase> optimizer_cases();

// A program of libtorch's alone: a network with statistics and dropout, trained on random examples.
struct PlainProgram {
  explicit PlainProgram(const MakeOptimizer& make_optimizer = plain_sgd, int hidden = 8);

  torch::Tensor step();

  torch::nn::Sequential net{nullptr};
  std::unique_ptr<torch::optim::Optimizer> optimizer;
};

// The same bound to a graph, with a session in which nothing is initialised.
struct BoundProgram : PlainProgram {
  explicit BoundProgram(const MakeOptimizer& make_optimizer = plain_sgd, int hidden = 8,
                        const TorchTrainingOptions& options = {});

  BoundProgram& initialize();
  BoundProgram& train(int steps);
  std::string save(const std::string& path);
  BoundProgram& restore(const std::string& prefix);

  // All that a checkpoint would have.
  std::vector<Tensor> state();
  Tensor get(const std::string& name);

  std::function<void()> after_step;  // the step function's end
  Graph graph;
  TorchTraining training;
  Operation init;
  std::unique_ptr<Saver> saver;
  std::unique_ptr<Session> session = std::make_unique<DirectSession>(graph, SessionOptions{});
};

void expect_same_state(BoundProgram& a, BoundProgram& b);

template <typename E, typename F>
std::string message_of(F&& body) {
  try {
    body();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace longhaul
