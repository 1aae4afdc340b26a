#pragma once

#include <cstdint>
#include <string>

#include "longhaul/longhaul.h"

namespace longhaul::examples {

// A network for 28 x 28 pictures of 10 classes, with what trains it.
struct Classifier {
  Output images;       // [batch, 784] float, 0 .. 1
  Output labels;       // [batch] int64
  Output loss;         // scalar
  Output num_correct;  // scalar int64: how many of the batch are classified right
  Variable step;
  Operation train_op;
};

struct ClassifierOptions {
  std::string model = "mlp";       // or cnn
  std::string optimizer = "adam";  // or sgd, momentum
  double learning_rate = 0;        // 0: what suits the optimizer
};

// Builds the network in `graph`, with summaries of the loss and of the logits; or below a scope, which may have devices
// for its operations.
Classifier build_classifier(Graph& graph, const ClassifierOptions& options);
Classifier build_classifier(const Scope& root, const ClassifierOptions& options);

}  // namespace longhaul::examples
