// Training on Fashion-MNIST in plain libtorch, supervised by a Trainer. This takes the lines that end in "// +", and
// one changed one. Kill it at any moment and start it again: it ends with the weights of a run that was never
// disturbed.
//
//   plain_libtorch --logdir=runs/plain_libtorch --steps=4000 --save_model_secs=30

#include <fmt/format.h>
#include <torch/nn.h>
#include <torch/optim.h>
#include <torch/utils.h>

#include <string>

#include "examples/batches.h"
#include "examples/idx_dataset.h"
#include "examples/say.h"
#include "examples/training_options.h"
#include "longhaul/trainer.h"  // +

using namespace longhaul::examples;

namespace {

constexpr int64_t kBatch = 64, kPixels = 28 * 28, kClasses = 10;

torch::nn::Sequential make_net() {
  return torch::nn::Sequential(torch::nn::Linear(kPixels, 128), torch::nn::BatchNorm1d(128), torch::nn::ReLU(),
                               torch::nn::Dropout(0.2), torch::nn::Linear(128, kClasses));
}

double test_accuracy(torch::nn::Sequential& net, const ImageDataset& test) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor images = torch::empty({test.count, kPixels}), labels = torch::empty({test.count}, torch::kLong);
  fill_range(test, 0, test.count, images.data_ptr<float>(), labels.data_ptr<int64_t>());
  net->eval();
  return net->forward(images).argmax(1).eq(labels).to(torch::kDouble).mean().item<double>();
}

int run(const PlainOptions& options) {
  const ImageDataset data = load_images(options.data_dir, "train");
  const ImageDataset test = load_images(options.data_dir, "t10k");
  const Batches batches(data, /*seed=*/1, kBatch);
  const torch::Tensor images = torch::empty({kBatch, kPixels}), labels = torch::empty({kBatch}, torch::kLong);

  torch::manual_seed(1);
  torch::nn::Sequential net = make_net();
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(1e-3));

  longhaul::Trainer trainer(options.logdir, net, optimizer,  // +
                            {.save_model_secs = longhaul::Seconds{options.save_model_secs}});
  return trainer.run([&] {  // +
    say("starts at step {}\n", trainer.step());
    // In a plain loop: for (int64_t step = 0; step < steps; ++step) {
    for (int64_t step : trainer.steps(options.steps)) {
      batches.fill(step, images.data_ptr<float>(), labels.data_ptr<int64_t>());
      optimizer.zero_grad();
      const torch::Tensor loss = torch::nn::functional::cross_entropy(net->forward(images), labels);
      loss.backward();
      optimizer.step();
      trainer.log("loss", loss);  // +
    }
    say("done test_accuracy={:.4f}\n", test_accuracy(net, test));
  });  // +
}

}  // namespace

int main(int argc, char** argv) {
  const auto parsed = parse_plain_options(argc, argv);
  if (parsed.exit_status >= 0) return parsed.exit_status;
  try {
    longhaul::set_intra_op_threads(1);  // the matrices are small, and the result the same on any machine
    return run(parsed.options);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fputs(fmt::format("plain_libtorch: {}\n", error.what()).c_str(), stderr);
    return 1;
  }
}
