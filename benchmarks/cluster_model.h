#pragma once

#include <utility>

#include "examples/classifier.h"
#include "longhaul/cluster.h"
#include "longhaul/longhaul.h"

namespace longhaul::bench {

// What all tasks of a cluster build: the example's network of 784-256-128-10 with plain gradient descent. Its variables
// are spread over the ps tasks, all else is on the worker; without a cluster, everything is in this process.
examples::Classifier build_cluster_classifier(Graph& graph, const ClusterSpec& cluster, int worker);

// 64 images and their labels.
std::pair<Tensor, Tensor> classifier_batch();

}  // namespace longhaul::bench
