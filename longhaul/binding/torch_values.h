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

// Something that a libtorch program has and a checkpoint must have: a parameter, a learning rate. The functions work
// on what the lists below were made of, which they borrow, and know nothing of threads.
struct TorchValue {
  std::string name;
  DType dtype = kFloat;
  Shape shape;  // unknown: of something that need not be there; if it is not, its value is a tensor of no elements
  bool is_parameter = false;
  std::optional<Shape> expected = {};  // of an unknown one, the shape that it is going to have
  bool trainable = false;
  at::Tensor tensor;                 // of a parameter or a buffer: itself
  std::function<at::Tensor()> read;  // a copy; its memory is used again when nobody holds it any more
  std::function<void(const at::Tensor&)> assign;
};

// Parameters, then buffers, by their names in named_parameters() and named_buffers(). InvalidArgumentError: one of them
// is of a dtype or a layout that checkpoints do not have.
std::vector<TorchValue> module_values(torch::nn::Module& module);

// The tensors of a module as they are when this is made.
class ModuleForm {
 public:
  explicit ModuleForm(const torch::nn::Module& module);  // borrowed
  // FailedPreconditionError: since then one was registered, replaced by another tensor, or removed; its name.
  void check() const;

 private:
  const torch::nn::Module* const module_;
  const std::vector<std::pair<std::string, at::Tensor>> tensors_;
};

// What the optimizer keeps for each of its parameters ("0.weight/exp_avg", "0.weight/step"), which have the names that
// they have in `module`, and the options of each group of parameters ("group_0/lr"). InvalidArgumentError: a parameter
// that is not the module's, or an optimizer of a kind whose state is not known here. A parameter that is there twice,
// because the module has it under two names, is taken once, under the first.
std::vector<TorchValue> optimizer_values(torch::optim::Optimizer& optimizer, const torch::nn::Module& module);

// "SGD", "Adam", "AdamW", "RMSprop", "Adagrad"; else the type's name.
std::string optimizer_kind(const torch::optim::Optimizer& optimizer);

// How many parameters each group has, and whether it is still so.
std::vector<size_t> group_sizes(const torch::optim::Optimizer& optimizer);
bool has_groups(const torch::optim::Optimizer& optimizer, const std::vector<size_t>& sizes);

// Changes when the optimizer steps this parameter of its own; 0 before that. Nothing: it keeps nothing that tells.
std::optional<uint64_t> update_count(torch::optim::Optimizer& optimizer, const at::Tensor& parameter);

// The name in `module` of one of the optimizer's parameters. InvalidArgumentError: it is none of the module's.
std::string parameter_name(const at::Tensor& parameter, const torch::nn::Module& module);

// How often step() was called, which is all that a scheduler of libtorch's has beside the learning rates. Assigned
// nothing, it stays.
TorchValue scheduler_value(std::string name, torch::optim::LRScheduler& scheduler);
int64_t step_count(torch::optim::LRScheduler& scheduler);

// Of the program's own, borrowed, of any shape. Assigned nothing, it stays. InvalidArgumentError: it is undefined, or
// see module_values.
TorchValue state_value(std::string name, at::Tensor* state);

// InvalidArgumentError: the tensor, of that name, is of a dtype or a layout that checkpoints do not have.
void check_can_be_kept(const std::string& name, const at::Tensor& tensor);

// A parameter's gradient; without elements where there is none, or one of no rows. InvalidArgumentError of
// `read`: it is of some rows (sparse).
TorchValue gradient_value(std::string name, const at::Tensor& parameter);

class GeneratorWatch;
TorchValue generator_value(std::string name, std::shared_ptr<GeneratorWatch> generator);

// Whether a value that was read says that there is nothing where `like` would be.
bool is_absent(const at::Tensor& value, const at::Tensor& like);
// InvalidArgumentError: the shapes differ.
void check_like(const std::string& name, const at::Tensor& value, const at::Tensor& parameter);

// A value like `tensor` as it is now, which is read and assigned by copying. InvalidArgumentError: see module_values.
// FailedPreconditionError of `read`: the tensor's dtype or shape have changed since.
TorchValue tensor_value(std::string name, const at::Tensor& tensor);

// Copies tensors into the processor's memory: into the same as before, as soon as nobody holds that copy.
class CopyBuffer {
 public:
  at::Tensor copy(const at::Tensor& source);

 private:
  at::Tensor buffer_;
};

}  // namespace longhaul
