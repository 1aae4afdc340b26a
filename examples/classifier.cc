#include "examples/classifier.h"

namespace longhaul::examples {
namespace {

constexpr int64_t kPixels = 28 * 28, kClasses = 10;

Output mlp(const Scope& root, const Output& images) {
  const Output hidden1 = ops::relu(root, ops::dense(root, images, 256, "hidden1"));
  const Output hidden2 = ops::relu(root, ops::dense(root, hidden1, 128, "hidden2"));
  return ops::dense(root, hidden2, kClasses, "logits");
}

// A convolution, its activation, and a maximum over squares of 2 x 2.
Output conv_block(const Scope& root, const Output& x, int64_t filters, std::string_view name) {
  const Output conv = ops::conv2d_layer(root, x, filters, 3, {.padding = 1}, name);
  return ops::max_pool2d(root, ops::relu(root, conv), 2);
}

Output cnn(const Scope& root, const Output& images) {
  const Output pictures = ops::reshape(root, images, {-1, 1, 28, 28});
  const Output features = conv_block(root, conv_block(root, pictures, 16, "conv1"), 32, "conv2");
  const Output hidden =
      ops::relu(root, ops::dense(root, ops::reshape(root, features, {-1, 32 * 7 * 7}), 128, "hidden"));
  return ops::dense(root, hidden, kClasses, "logits");
}

Operation minimize(const ClassifierOptions& options, const Output& loss, const Variable& step) {
  const auto rate = [&](double default_rate) {
    return options.learning_rate > 0 ? options.learning_rate : default_rate;
  };
  if (options.optimizer == "sgd") return GradientDescentOptimizer(rate(0.1)).minimize(loss, step);
  if (options.optimizer == "momentum") return MomentumOptimizer(rate(0.02), 0.9).minimize(loss, step);
  return AdamOptimizer(rate(0.001)).minimize(loss, step);
}

}  // namespace

Classifier build_classifier(Graph& graph, const ClassifierOptions& options) {
  return build_classifier(Scope(graph), options);
}

Classifier build_classifier(const Scope& root, const ClassifierOptions& options) {
  Classifier net;
  net.images = ops::placeholder(root, kFloat, {-1, kPixels}, "images");
  net.labels = ops::placeholder(root, kInt64, {-1}, "labels");
  const Output logits = options.model == "cnn" ? cnn(root, net.images) : mlp(root, net.images);
  net.loss = ops::cross_entropy_loss(root, logits, net.labels);
  const Output predicted = ops::argmax(root, logits, 1);
  net.num_correct = ops::sum(root, ops::cast(root, ops::eq(root, predicted, net.labels), kInt64));
  net.step = ops::global_step(root);
  net.train_op = minimize(options, net.loss, net.step);
  summary::scalar(root, "loss", net.loss);
  summary::histogram(root, "logits_histogram", logits);
  return net;
}

}  // namespace longhaul::examples
