#include "benchmarks/cluster_model.h"

#include <fmt/format.h>

#include <algorithm>

namespace longhaul::bench {

examples::Classifier build_cluster_classifier(Graph& graph, const ClusterSpec& cluster, int worker) {
  graph.set_seed(1);
  const Scope root = Scope(graph).with_device(
      replica_device_setter({.worker_device = fmt::format("/job:worker/task:{}", worker), .cluster = cluster}));
  return examples::build_classifier(root, {.optimizer = "sgd"});
}

std::pair<Tensor, Tensor> classifier_batch() {
  constexpr int64_t kClusterBatch = 64;
  Tensor images(kFloat, {kClusterBatch, 784}), labels(kInt64, {kClusterBatch});
  std::ranges::fill(images.mutable_flat<float>(), 0.5f);
  std::ranges::fill(labels.mutable_flat<int64_t>(), 3);
  return {images, labels};
}

}  // namespace longhaul::bench
