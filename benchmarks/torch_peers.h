#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/trainer/trainer.h"

namespace longhaul::bench {

// Training steps of the same network and data as a user of plain libtorch writes them. No torch header here: it takes a
// minute to compile.
class TorchPeer {
 public:
  virtual ~TorchPeer() = default;
  virtual void step() = 0;
  virtual double loss() = 0;  // of a step, so that a peer that computes nothing is noticed
};

// One whose step can also run under supervision.
class BindablePeer : public TorchPeer {
 public:
  virtual TorchTraining bind(const Scope& scope) = 0;
  virtual std::unique_ptr<Trainer> supervise(std::string directory) = 0;
  virtual const at::Tensor& last_loss() const = 0;
};

// One with a square layer under Adam: their weights and state take that many bytes. Notes when its steps begin and end.
class LargePeer : public BindablePeer {
 public:
  using BindablePeer::bind;
  virtual TorchTraining bind(const Scope& scope, bool overlap_snapshots) = 0;

  // In milliseconds, on the steady clock.
  struct Step {
    double begin = 0, end = 0;
  };
  virtual std::vector<Step> take_steps() = 0;  // since the last call
};
std::unique_ptr<LargePeer> large_adam(int64_t bytes);

// Layers of that many units, relu between them, cross entropy, gradient descent at rate 0.01.
struct MlpShape {
  int64_t batch = 64;
  std::vector<int64_t> sizes;  // inputs, hidden units..., classes
};

// "mlp_784_256_128_10", with a batch of 64, or "mlp_64_32_10", with one of 32. std::runtime_error: another name.
MlpShape mlp_shape(const std::string& name);

// nn::Linear modules, autograd, optim::SGD.
std::unique_ptr<BindablePeer> module_mlp(const MlpShape& shape);
// The same with forward and backward written out in ATen operators, below autograd, updating in place.
std::unique_ptr<TorchPeer> manual_mlp(const MlpShape& shape);
// The network of examples/classifier.cc, model cnn, on a batch of 64.
std::unique_ptr<BindablePeer> module_cnn();
std::unique_ptr<TorchPeer> manual_cnn();

// Seconds for `count` direct calls of at::add on tensors of 4 floats, below autograd, into a buffer or into a new
// tensor.
double direct_add_seconds(int count, bool into_buffer);

// Multiplies that many floats by 0.999 in place, one pass over memory, each time it is called.
std::function<void()> scaling_in_place(int64_t elements);

}  // namespace longhaul::bench
