#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/tensor/dtype.h"
#include "longhaul/tensor/shape.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class LRScheduler;
class Optimizer;
}  // namespace torch::optim

namespace longhaul {

class PendingCopy;

// A value of a libtorch program that belongs in checkpoints: a parameter, a learning rate. The functions work on the
// objects passed to the factories below, which they borrow, and are not synchronised.
struct TorchValue {
  std::string name;
  DType dtype = kFloat;
  Shape shape;  // unknown: the value may be missing; it is then a tensor without elements
  bool is_parameter = false;
  std::optional<Shape> expected = {};  // if `shape` is unknown, the future shape
  bool trainable = false;
  at::Tensor tensor;                 // the parameter or buffer itself
  std::function<at::Tensor()> read;  // a copy; its memory is reused once it is released
  // The same, whose bytes come later. Empty: the value is small, or changes unannounced.
  std::function<at::Tensor(PendingCopy& later)> copy_later;
  std::function<void(const at::Tensor&)> assign;
};

// Parameters, then buffers, by their names in named_parameters() and named_buffers(). InvalidArgumentError: one of them
// has a dtype or a layout that checkpoints lack.
std::vector<TorchValue> module_values(torch::nn::Module& module);

// The tensors of a module at the time of construction.
class ModuleForm {
 public:
  // The module is kept if a shared pointer owns it, and borrowed if none does.
  explicit ModuleForm(const torch::nn::Module& module);

  const torch::nn::Module& module() const { return *module_; }
  // FailedPreconditionError: since then one was registered, replaced by another tensor, or removed; the message has its
  // name.
  void check() const;

 private:
  const torch::nn::Module* const module_;
  const std::shared_ptr<const torch::nn::Module> owner_;  // null: no shared pointer owns it
  const std::vector<std::pair<std::string, at::Tensor>> tensors_;
};

// The optimizer's state for each of its parameters ("0.weight/exp_avg", "0.weight/step"), by the parameters' names in
// `module`, and the options of each parameter group ("group_0/lr"). InvalidArgumentError: a parameter that is not the
// module's, or an optimizer of an unknown kind. A parameter that the module has under two names appears once, under the
// first.
std::vector<TorchValue> optimizer_values(torch::optim::Optimizer& optimizer, const torch::nn::Module& module);

// "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "LBFGS", or the name in register_optimizer(); else the type's name.
std::string optimizer_kind(const torch::optim::Optimizer& optimizer);

// The number of parameters in each group, and whether it is still the same.
std::vector<size_t> group_sizes(const torch::optim::Optimizer& optimizer);
bool has_groups(const torch::optim::Optimizer& optimizer, const std::vector<size_t>& sizes);

// A count that changes when the optimizer steps this parameter of its own; 0 before that. nullopt: its state has no
// such count.
std::optional<uint64_t> update_count(torch::optim::Optimizer& optimizer, const at::Tensor& parameter);

// The name in `module` of one of the optimizer's parameters. InvalidArgumentError: it is not the module's.
std::string parameter_name(const at::Tensor& parameter, const torch::nn::Module& module);

// The number of calls of step(), which is a libtorch scheduler's only state apart from the learning rates. Assigning a
// tensor without elements leaves it unchanged.
TorchValue scheduler_value(std::string name, torch::optim::LRScheduler& scheduler);
int64_t step_count(torch::optim::LRScheduler& scheduler);

// The program's own tensor, borrowed, of any shape. Assigning a tensor without elements leaves it unchanged.
// InvalidArgumentError: it is undefined, or see module_values.
TorchValue state_value(std::string name, at::Tensor* state);

// InvalidArgumentError: the tensor, of that name, has a dtype or a layout that checkpoints lack.
void check_can_be_kept(const std::string& name, const at::Tensor& tensor);

// A parameter's gradient; without elements if there is none, or one of no rows. InvalidArgumentError by `read`: it is
// sparse, with some rows.
TorchValue gradient_value(std::string name, const at::Tensor& parameter);

class GeneratorWatch;
TorchValue generator_value(std::string name, std::shared_ptr<GeneratorWatch> generator);
// A checkpoint may lack it, or have the state of another libtorch, which is left out with a warning.
TorchValue device_generator_value(std::string name, std::shared_ptr<GeneratorWatch> generator);

// Whether a value that was read means that there is none where `like` is expected.
bool is_absent(const at::Tensor& value, const at::Tensor& like);
// InvalidArgumentError: the shapes differ.
void check_like(const std::string& name, const at::Tensor& value, const at::Tensor& parameter);

// A value of the dtype and shape that `tensor` has now, read and assigned by copying. InvalidArgumentError: see
// module_values. FailedPreconditionError by `read`: the tensor's dtype or shape has changed since.
TorchValue tensor_value(std::string name, const at::Tensor& tensor);

// Copies tensors to host memory, and reuses the memory of the previous copy once that is released.
class CopyBuffer {
 public:
  at::Tensor copy(const at::Tensor& source);
  // The bytes come later.
  at::Tensor copy_later(const std::string& name, const at::Tensor& source, PendingCopy& later);

  // Lets a value that `find` returns be read in both ways; of nothing (undefined), a tensor without elements.
  static void read_by(TorchValue& value, const std::function<at::Tensor()>& find, at::ScalarType type);

 private:
  const at::Tensor& memory_for(const at::Tensor& source);

  at::Tensor buffer_;
};

}  // namespace longhaul
