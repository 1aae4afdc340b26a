#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace longhaul {

// The groups and options with which a program constructed an optimizer. Checkpoints have it as text:
//
//   group lr=0.1 momentum=0.9 ...
//     0.weight
//     0.bias
//   group lr=0.01 momentum=0.9 ...
//     3.weight
class OptimizerRecord {
 public:
  OptimizerRecord() = default;
  OptimizerRecord(torch::optim::Optimizer& optimizer, const torch::nn::Module& module);
  explicit OptimizerRecord(const at::Tensor& text);  // as bytes; without elements, empty() is true

  bool empty() const { return groups_.empty(); }
  at::Tensor to_text() const;

  // InvalidArgumentError: `stored` has a different number of groups, or a parameter is in a different one.
  void check_groups(const std::string& optimizer, const OptimizerRecord& stored) const;
  // The options with different values: "lr of group 0 is 0.01 in this program and 0.1 in the checkpoint"; "": none.
  std::string changes_since(const OptimizerRecord& stored) const;

 private:
  struct Group {
    std::vector<std::pair<std::string, double>> options;
    std::vector<std::string> parameters;
  };
  std::vector<Group> groups_;
};

}  // namespace longhaul
