// A training with epochs and batches of its own, under a Trainer: what tests/epochs_resume_test.cc kills and resumes.
//   epochs_program DIRECTORY EPOCHS
#include <fmt/format.h>
#include <torch/data/dataloader.h>
#include <torch/data/datasets/base.h>
#include <torch/data/datasets/map.h>
#include <torch/data/samplers/random.h>
#include <torch/data/transforms/stack.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/utils.h>

#include <cstdio>
#include <random>
#include <string>

#include "longhaul/trainer.h"

namespace {

namespace data = torch::data;

struct Points : data::datasets::Dataset<Points> {
  data::Example<> get(size_t i) override {
    return {torch::full({8}, 0.01 * static_cast<double>(i)), torch::zeros({1})};
  }
  torch::optional<size_t> size() const override { return 96; }
};

// 12 batches in an epoch. The weights are large enough that a snapshot is copied while the next step computes.
int train(const std::string& directory, int64_t epochs) {
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(8, 256), torch::nn::Dropout(0.5), torch::nn::Linear(256, 256),
                            torch::nn::Linear(256, 8));
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(1e-3));
  torch::optim::StepLR scheduler(optimizer, /*step_size=*/3, /*gamma=*/0.9);
  const auto loader = data::make_data_loader<data::samplers::RandomSampler>(Points().map(data::transforms::Stack<>()),
                                                                            data::DataLoaderOptions(8));
  std::mt19937 engine(7);
  int64_t drawn = 0;
  double sum_of_metrics = 0;

  longhaul::Trainer trainer(directory, net, optimizer,
                            {.save_model_secs = longhaul::Seconds{0.1}, .training = {.schedulers = {&scheduler}}});
  trainer.keep("drawn", drawn, engine, sum_of_metrics);
  return trainer.run([&] {
    fmt::print("starts at step {}\n", trainer.step());
    std::fflush(stdout);
    for ([[maybe_unused]] const int64_t epoch : trainer.epochs(epochs)) {
      const double noise = static_cast<double>(engine() % 100) / 1000;
      for (auto& batch : trainer.batches(*loader)) {
        optimizer.zero_grad();
        const torch::Tensor input = batch.data + noise * torch::randn_like(batch.data);
        const torch::Tensor loss = (net->forward(input) - batch.data).square().mean();
        loss.backward();
        optimizer.step();
        drawn += static_cast<int64_t>(engine() % 7);
        trainer.log("loss", loss);
      }
      sum_of_metrics +=
          trainer.validate([&] { return net->forward(torch::randn({4, 8})).square().mean().item<double>(); });
      scheduler.step();
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  longhaul::set_intra_op_threads(1);
  return train(argv[1], std::stoll(argv[2]));
}
