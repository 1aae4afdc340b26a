#include "benchmarks/graph_training.h"

#include <cstdlib>

#include "examples/classifier.h"

namespace longhaul::bench {

std::shared_ptr<GraphTraining> GraphTraining::mlp(const MlpShape& shape, int threads) {
  auto training = std::make_shared<GraphTraining>();
  const Scope root(training->graph_);
  const Output images = ops::placeholder(root, kFloat, {-1, shape.sizes.front()}, "x");
  const Output labels = ops::placeholder(root, kInt64, {-1}, "y");
  Output activation = images;
  for (size_t i = 1; i < shape.sizes.size(); ++i) {
    activation = ops::dense(root, activation, shape.sizes[i], "layer");
    if (i + 1 < shape.sizes.size()) activation = ops::relu(root, activation);
  }
  const Output loss = ops::cross_entropy_loss(root, activation, labels);
  const Operation train_op = GradientDescentOptimizer(0.01).minimize(loss);
  training->start({images, labels, loss, train_op}, shape.batch, shape.sizes.front(), shape.sizes.back(), threads);
  return training;
}

std::shared_ptr<GraphTraining> GraphTraining::cnn(int threads) {
  auto training = std::make_shared<GraphTraining>();
  const auto net =
      examples::build_classifier(training->graph_, {.model = "cnn", .optimizer = "sgd", .learning_rate = 0.01});
  training->start({net.images, net.labels, net.loss, net.train_op}, 64, 784, 10, threads);
  return training;
}

void GraphTraining::start(const Net& net, int64_t batch, int64_t inputs, int64_t classes, int threads) {
  images_ = net.images;
  labels_ = net.labels;
  loss_ = net.loss;
  x_ = Tensor(kFloat, {batch, inputs});
  for (float& value : x_.mutable_flat<float>()) value = static_cast<float>(std::rand()) / static_cast<float>(RAND_MAX);
  y_ = Tensor(kInt64, {batch});
  for (int64_t& value : y_.mutable_flat<int64_t>()) value = std::rand() % classes;
  const Operation init = ops::global_variables_initializer(Scope(graph_));
  session_ = new_session("", graph_, {.intra_op_parallelism_threads = threads});
  session_->run(init);
  step_ = session_->make_callable(net.train_op, {net.images, net.labels});
}

}  // namespace longhaul::bench
