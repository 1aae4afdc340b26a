#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace torch::optim {
class Optimizer;
}

namespace longhaul {

// Tells whether bound optimizers, which are borrowed, are those that train: one that was made anew after it was bound
// leaves the bound one as it is.
class OptimizerWatch {
 public:
  // Whether the step just made has changed a tensor, and it has a gradient.
  using Trained = std::function<bool(const at::Tensor& parameter)>;
  struct Finding {
    std::string optimizer;
    at::Tensor parameter;  // that it has, and something else trains
  };

  // How many steps in a row, before it is said.
  static constexpr int kSteps = 10;

  void add(const std::string& name, torch::optim::Optimizer& optimizer);
  // After a step.
  std::optional<Finding> look(const Trained& trained);

 private:
  struct Bound {
    std::string name;
    torch::optim::Optimizer* optimizer;
    std::map<const c10::TensorImpl*, uint64_t> counts;  // as they were when a step had changed the parameter
    int idle = 0;                                       // steps
  };
  bool others_have(const at::Tensor& parameter, const Bound& bound) const;
  std::optional<at::Tensor> find_trained(const Bound& bound, const Trained& trained) const;

  std::vector<Bound> optimizers_;
};

}  // namespace longhaul
