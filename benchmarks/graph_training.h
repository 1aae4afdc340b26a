#pragma once

#include <memory>

#include "benchmarks/torch_peers.h"
#include "longhaul/longhaul.h"

namespace longhaul::bench {

// A network described as a graph, trained in a session, one step a call. `threads`: as SessionOptions has it.
class GraphTraining {
 public:
  static std::shared_ptr<GraphTraining> mlp(const MlpShape& shape, int threads = 0);
  static std::shared_ptr<GraphTraining> cnn(int threads = 0);  // examples/classifier.cc, on a batch of 64

  void step() { step_(x_, y_); }
  double loss() { return session_->run(loss_, {{images_, x_}, {labels_, y_}}).item<double>(); }

 private:
  struct Net {
    Output images, labels, loss;
    Operation train_op;
  };
  void start(const Net& net, int64_t batch, int64_t inputs, int64_t classes, int threads);

  Graph graph_;
  Output images_, labels_, loss_;
  Tensor x_, y_;
  std::unique_ptr<Session> session_;
  Callable step_;
};

}  // namespace longhaul::bench
