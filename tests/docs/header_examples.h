#pragma once

// What the examples in the headers' comments use and do not declare themselves. They are compiled, not linked.

#include <fmt/format.h>
#include <torch/data/dataloader.h>
#include <torch/data/datasets/map.h>
#include <torch/data/datasets/tensor.h>
#include <torch/data/transforms/stack.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/schedulers/step_lr.h>

#include "longhaul/longhaul.h"
#include "longhaul/server.h"
#include "longhaul/testing.h"
#include "longhaul/torch.h"
#include "longhaul/trainer.h"

#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"

namespace longhaul::header_examples {

// A function of the program, with any parameters and any result that an example makes of it.
template <typename Result>
struct Function {
  template <typename... Arguments>
  Result operator()(Arguments&&...) const;
};

extern const Function<void> train, use, write, evaluate, report, read_more, call_somebody;
extern const Function<torch::Tensor> loss_of, batch;
extern const Function<Output> model;
extern const Function<std::vector<Tensor>> load_images;

extern Graph graph;
extern Scope root, scope;
extern Session& session;
extern Supervisor sv;
extern Coordinator coord;
extern std::shared_ptr<Dataset> dataset;
extern Tensor tensor;
extern Operation train_op;
extern Variable step;
extern Output loss, accuracy, image, label, images, labels, b, w, x, examples_seen, global_step;
extern GradientDescentOptimizer optimizer;
extern FIFOQueue queue;
extern torch::nn::Sequential net;
extern std::shared_ptr<int> test_loader;
extern int64_t restored_step, last_step, last_example;
extern std::string prefix;
struct Options {
  int64_t batch_size;
};
extern Options options;

}  // namespace longhaul::header_examples
