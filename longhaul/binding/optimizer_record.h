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

// What a program has made an optimizer with: its groups of parameters, and their options. Checkpoints have it as text:
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
  explicit OptimizerRecord(const at::Tensor& text);  // as bytes; of none: empty() is true

  bool empty() const { return groups_.empty(); }
  at::Tensor to_text() const;

  // InvalidArgumentError: `stored` has another number of groups, or a parameter is in another one.
  void check_groups(const std::string& optimizer, const OptimizerRecord& stored) const;
  // What was given another value: "lr of group 0 is 0.01 in this program and was 0.1 in the checkpoint's";
  // "": nothing.
  std::string changes_since(const OptimizerRecord& stored) const;

 private:
  struct Group {
    std::vector<std::pair<std::string, double>> options;
    std::vector<std::string> parameters;
  };
  std::vector<Group> groups_;
};

}  // namespace longhaul
