#include "benchmarks/torch_peers.h"

#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "benchmarks/bench.h"

namespace longhaul::bench {
namespace {

constexpr double kRate = 0.01;
constexpr int64_t kCnnBatch = 64;

TrainerOptions without_progress() {
  TrainerOptions options;
  options.progress = false;
  options.supervisor = [](SupervisorOptions& supervisor) { supervisor.services.save_at_end = false; };
  return options;
}

class ModuleMlp : public BindablePeer {
 public:
  explicit ModuleMlp(const MlpShape& shape)
      : x_(torch::rand({shape.batch, shape.sizes.front()})), y_(torch::randint(shape.sizes.back(), {shape.batch})) {
    for (size_t i = 1; i < shape.sizes.size(); ++i) {
      net_->push_back(torch::nn::Linear(shape.sizes[i - 1], shape.sizes[i]));
      if (i + 1 < shape.sizes.size()) net_->push_back(torch::nn::ReLU());
    }
    optimizer_ = std::make_unique<torch::optim::SGD>(net_->parameters(), kRate);
  }
  void step() override {
    optimizer_->zero_grad();
    loss_ = torch::nn::functional::cross_entropy(net_->forward(x_), y_);
    loss_.backward();
    optimizer_->step();
  }
  double loss() override { return loss_.item<double>(); }
  TorchTraining bind(const Scope& scope) override {
    return torch_training(scope, *net_, *optimizer_, [this] {
      step();
      return loss_;
    });
  }
  std::unique_ptr<Trainer> supervise(std::string directory) override {
    return std::make_unique<Trainer>(std::move(directory), net_, *optimizer_, without_progress());
  }
  const at::Tensor& last_loss() const override { return loss_; }

 private:
  torch::nn::Sequential net_;
  torch::Tensor x_, y_, loss_;
  std::unique_ptr<torch::optim::SGD> optimizer_;
};

class LargeAdam : public LargePeer {
 public:
  explicit LargeAdam(int64_t units)
      : net_(torch::nn::LinearOptions(units, units).bias(false)),
        optimizer_(net_->parameters(), torch::optim::AdamOptions(1e-4)),
        x_(torch::rand({64, units})) {}
  void step() override {
    Step& step = steps_.emplace_back();
    step.begin = now_ms();
    optimizer_.zero_grad();
    loss_ = net_->forward(x_).square().mean();
    loss_.backward();
    optimizer_.step();
    step.end = now_ms();
  }
  double loss() override { return loss_.item<double>(); }
  TorchTraining bind(const Scope& scope) override { return bind(scope, /*overlap_snapshots=*/true); }
  TorchTraining bind(const Scope& scope, bool overlap_snapshots) override {
    const auto one = [this] {
      step();
      return loss_;
    };
    return torch_training(scope, *net_, optimizer_, one, {.overlap_snapshots = overlap_snapshots});
  }
  std::unique_ptr<Trainer> supervise(std::string directory) override {
    return std::make_unique<Trainer>(std::move(directory), net_, optimizer_, without_progress());
  }
  const at::Tensor& last_loss() const override { return loss_; }
  std::vector<Step> take_steps() override { return std::exchange(steps_, {}); }

 private:
  static double now_ms() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  torch::nn::Linear net_;
  torch::optim::Adam optimizer_;
  torch::Tensor x_, loss_;
  std::vector<Step> steps_;
};

class ManualMlp : public TorchPeer {
 public:
  explicit ManualMlp(const MlpShape& shape)
      : x_(at::rand({shape.batch, shape.sizes.front()})), y_(at::randint(shape.sizes.back(), {shape.batch})) {
    for (size_t i = 1; i < shape.sizes.size(); ++i) {
      weights_.push_back(at::randn({shape.sizes[i - 1], shape.sizes[i]}) * 0.05);
      biases_.push_back(at::zeros({shape.sizes[i]}));
    }
  }

  void step() override {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    const size_t layers = weights_.size();
    std::vector<at::Tensor> inputs{x_}, before_relu;
    for (size_t i = 0; i < layers; ++i) {
      at::Tensor z = at::addmm(biases_[i], inputs.back(), weights_[i]);
      if (i + 1 == layers) {
        before_relu.push_back(z);
      } else {
        inputs.push_back(at::relu(z));
      }
    }
    const at::Tensor log_p = at::_log_softmax(before_relu.back(), 1, false);
    auto [loss, total] = at::nll_loss_forward(log_p, y_, {}, at::Reduction::Mean, -100);
    loss_ = loss;
    at::Tensor grad = at::nll_loss_backward(at::ones_like(loss), log_p, y_, {}, at::Reduction::Mean, -100, total);
    grad = at::_log_softmax_backward_data(grad, log_p, 1, log_p.scalar_type());
    for (size_t i = layers; i-- > 0;) {
      const at::Tensor grad_weight = at::mm(inputs[i].t(), grad);
      const at::Tensor grad_bias = at::sum(grad, 0);
      if (i > 0) grad = at::threshold_backward(at::mm(grad, weights_[i].t()), inputs[i], 0);
      weights_[i].sub_(grad_weight, kRate);
      biases_[i].sub_(grad_bias, kRate);
    }
  }
  double loss() override { return loss_.item<double>(); }

 private:
  at::Tensor x_, y_, loss_;
  std::vector<at::Tensor> weights_, biases_;
};

class ModuleCnn : public BindablePeer {
 public:
  ModuleCnn()
      : net_(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 16, 3).padding(1)), torch::nn::ReLU(),
             torch::nn::MaxPool2d(2), torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 32, 3).padding(1)),
             torch::nn::ReLU(), torch::nn::MaxPool2d(2), torch::nn::Flatten(), torch::nn::Linear(32 * 7 * 7, 128),
             torch::nn::ReLU(), torch::nn::Linear(128, 10)),
        optimizer_(net_->parameters(), kRate) {}
  void step() override {
    optimizer_.zero_grad();
    loss_ = torch::nn::functional::cross_entropy(net_->forward(x_), y_);
    loss_.backward();
    optimizer_.step();
  }
  double loss() override { return loss_.item<double>(); }
  TorchTraining bind(const Scope& scope) override {
    return torch_training(scope, *net_, optimizer_, [this] {
      step();
      return loss_;
    });
  }
  std::unique_ptr<Trainer> supervise(std::string directory) override {
    return std::make_unique<Trainer>(std::move(directory), net_, optimizer_, without_progress());
  }
  const at::Tensor& last_loss() const override { return loss_; }

 private:
  torch::nn::Sequential net_;
  torch::optim::SGD optimizer_;
  torch::Tensor x_ = torch::rand({kCnnBatch, 1, 28, 28}), y_ = torch::randint(10, {kCnnBatch}), loss_;
};

class ManualCnn : public TorchPeer {
 public:
  void step() override {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    const Block first = forward_block(x_, filters_[0], filter_biases_[0]);
    const Block second = forward_block(first.pooled, filters_[1], filter_biases_[1]);
    const at::Tensor flat = second.pooled.reshape({kCnnBatch, 32 * 7 * 7});
    const at::Tensor hidden = at::relu(at::addmm(biases_[0], flat, weights_[0]));
    const at::Tensor log_p = at::_log_softmax(at::addmm(biases_[1], hidden, weights_[1]), 1, false);
    auto [loss, total] = at::nll_loss_forward(log_p, y_, {}, at::Reduction::Mean, -100);
    loss_ = loss;
    at::Tensor grad = at::nll_loss_backward(at::ones_like(loss), log_p, y_, {}, at::Reduction::Mean, -100, total);
    grad = at::_log_softmax_backward_data(grad, log_p, 1, log_p.scalar_type());
    grad = at::threshold_backward(backward_dense(1, hidden, grad), hidden, 0);
    grad = backward_dense(0, flat, grad).reshape({kCnnBatch, 32, 7, 7});
    grad = backward_block(second, first.pooled, 1, grad, true);
    backward_block(first, x_, 0, grad, false);
  }
  double loss() override { return loss_.item<double>(); }

 private:
  struct Block {
    at::Tensor active, pooled, indices;
  };

  static Block forward_block(const at::Tensor& x, const at::Tensor& filter, const at::Tensor& bias) {
    Block block;
    block.active = at::relu(at::convolution(x, filter, bias, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1));
    std::tie(block.pooled, block.indices) =
        at::max_pool2d_with_indices(block.active, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false);
    return block;
  }

  at::Tensor backward_dense(size_t i, const at::Tensor& input, const at::Tensor& grad) {
    const at::Tensor grad_weight = at::mm(input.t(), grad), grad_bias = at::sum(grad, 0);
    const at::Tensor grad_input = at::mm(grad, weights_[i].t());
    weights_[i].sub_(grad_weight, kRate);
    biases_[i].sub_(grad_bias, kRate);
    return grad_input;
  }

  at::Tensor backward_block(const Block& block, const at::Tensor& input, size_t i, const at::Tensor& grad,
                            bool input_too) {
    at::Tensor unpooled =
        at::max_pool2d_with_indices_backward(grad, block.active, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false, block.indices);
    unpooled = at::threshold_backward(unpooled, block.active, 0);
    auto [grad_input, grad_filter, grad_bias] =
        at::convolution_backward(unpooled, input, filters_[i], at::IntArrayRef{filters_[i].size(0)}, {1, 1}, {1, 1},
                                 {1, 1}, false, {0, 0}, 1, {input_too, true, true});
    filters_[i].sub_(grad_filter, kRate);
    filter_biases_[i].sub_(grad_bias, kRate);
    return grad_input;
  }

  at::Tensor x_ = at::rand({kCnnBatch, 1, 28, 28}), y_ = at::randint(10, {kCnnBatch}), loss_;
  std::vector<at::Tensor> filters_{at::randn({16, 1, 3, 3}) * 0.3, at::randn({32, 16, 3, 3}) * 0.1};
  std::vector<at::Tensor> filter_biases_{at::zeros({16}), at::zeros({32})};
  std::vector<at::Tensor> weights_{at::randn({32 * 7 * 7, 128}) * 0.03, at::randn({128, 10}) * 0.1};
  std::vector<at::Tensor> biases_{at::zeros({128}), at::zeros({10})};
};

}  // namespace

MlpShape mlp_shape(const std::string& name) {
  if (name == "mlp_784_256_128_10") return {64, {784, 256, 128, 10}};
  if (name == "mlp_64_32_10") return {32, {64, 32, 10}};
  throw std::runtime_error("unknown network " + name);
}

std::unique_ptr<LargePeer> large_adam(int64_t bytes) {
  const double floats = static_cast<double>(bytes) / sizeof(float) / 3;  // of the weights, and of each moment
  return std::make_unique<LargeAdam>(static_cast<int64_t>(std::sqrt(floats)));
}
std::unique_ptr<BindablePeer> module_mlp(const MlpShape& shape) {
  return std::make_unique<ModuleMlp>(shape);
}
std::unique_ptr<TorchPeer> manual_mlp(const MlpShape& shape) {
  return std::make_unique<ManualMlp>(shape);
}
std::unique_ptr<BindablePeer> module_cnn() {
  return std::make_unique<ModuleCnn>();
}
std::unique_ptr<TorchPeer> manual_cnn() {
  return std::make_unique<ManualCnn>();
}

std::function<void()> scaling_in_place(int64_t elements) {
  return [w = at::ones({elements})]() mutable {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    w.mul_(0.999);
  };
}

double direct_add_seconds(int count, bool into_buffer) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  const at::Tensor a = at::rand({4}), b = at::rand({4});
  at::Tensor sum = at::empty({4});
  return time_seconds([&] {
    for (int i = 0; i < count; ++i) {
      if (into_buffer) {
        at::add_out(sum, a, b);
      } else {
        sum = at::add(a, b);
      }
    }
  });
}

}  // namespace longhaul::bench
