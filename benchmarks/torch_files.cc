#include "benchmarks/torch_files.h"

#include <torch/torch.h>

namespace longhaul::bench {

struct TorchTensors::Tensors {
  std::vector<torch::Tensor> all;
};

TorchTensors::TorchTensors(const std::vector<int64_t>& sizes) : tensors_(std::make_unique<Tensors>()) {
  for (const int64_t size : sizes) tensors_->all.push_back(torch::rand({size}));
}

TorchTensors::~TorchTensors() = default;

void TorchTensors::save(const std::string& path) const {
  torch::save(tensors_->all, path);
}

void TorchTensors::load(const std::string& path) {
  tensors_->all.clear();
  torch::load(tensors_->all, path);
}

double TorchTensors::sum() const {
  double sum = 0;
  for (const torch::Tensor& tensor : tensors_->all) sum += tensor.sum().item<double>();
  return sum;
}

}  // namespace longhaul::bench
