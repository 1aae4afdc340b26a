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

// Detects bound optimizers (borrowed) that do not do the training: if a program creates its optimizer again after
// binding, the bound one stays idle.
class OptimizerWatch {
 public:
  // Whether the last step changed this tensor, and it has a gradient.
  using Trained = std::function<bool(const at::Tensor& parameter)>;
  struct Finding {
    std::string optimizer;
    at::Tensor parameter;  // one of its parameters, trained by something else
  };

  // The number of consecutive idle steps before it is reported.
  static constexpr int kSteps = 10;

  void add(const std::string& name, torch::optim::Optimizer& optimizer);
  // Call after each step.
  std::optional<Finding> look(const Trained& trained);

 private:
  struct Bound {
    std::string name;
    torch::optim::Optimizer* optimizer;
    std::map<const c10::TensorImpl*, uint64_t> counts;  // update counts after a step that changed the parameter
    int idle = 0;                                       // steps
  };
  bool others_have(const at::Tensor& parameter, const Bound& bound) const;
  std::optional<at::Tensor> find_trained(const Bound& bound, const Trained& trained) const;

  std::vector<Bound> optimizers_;
};

}  // namespace longhaul
