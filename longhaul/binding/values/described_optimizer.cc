#include "longhaul/binding/values/described_optimizer.h"

#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "longhaul/base/error.h"
#include "longhaul/binding/values/optimizer_state.h"
#include "longhaul/runtime/aten/aten_tensor.h"

namespace longhaul {
namespace {

using Description = std::shared_ptr<const OptimizerDescription>;
using torch::optim::Optimizer;
using torch::optim::OptimizerOptions;
using torch::optim::OptimizerParamState;

// As values have it that are missing.
at::Tensor nothing(at::ScalarType dtype) {
  return at::empty({0}, at::TensorOptions(dtype));
}

bool is_nothing(const at::Tensor& value) {
  return value.dim() == 1 && value.numel() == 0;
}

// The state for one parameter, as its class says.
class DescribedState {
 public:
  DescribedState(Description description, Optimizer& optimizer, const at::Tensor& parameter, std::string name)
      : description_(std::move(description)),
        state_(optimizer, parameter,
               [make = description_->make_state] { return std::unique_ptr<OptimizerParamState>(make()); }),
        name_(std::move(name)) {}

  const OptimizerDescription& description() const { return *description_; }
  const at::Tensor& parameter() const { return state_.parameter(); }

  OptimizerParamState* find() const {
    OptimizerParamState* found = state_.find();
    if (found == nullptr || description_->fits_state(*found)) return found;
    throw FailedPreconditionError(
        fmt::format("the optimizer {} keeps for {} a state of another class than its OptimizerKind says: {}. Register "
                    "it with the class that its step() uses",
                    description_->name, name_, c10::demangle(typeid(*found).name())));
  }
  OptimizerParamState& find_or_make() const {
    find();
    return state_.find_or_make();
  }
  void erase() const { state_.erase(); }

  // A state without numbers is there if any of its tensors is.
  void erase_if_empty() const {
    OptimizerParamState* found = find();
    if (found == nullptr || !description_->numbers.empty()) return;
    for (const auto& field : description_->tensors) {
      for (const at::Tensor& tensor : field.get(*found)) {
        if (tensor.defined()) return;
      }
    }
    erase();
  }

 private:
  Description description_;
  StateOf<OptimizerParamState> state_;
  std::string name_;  // of the parameter
};

template <typename Owner>
at::Tensor number_of(const OptimizerDescription::Number<Owner>& field, Owner& owner) {
  return at::scalar_tensor(field.get(owner), at::TensorOptions(field.dtype));
}

TorchValue state_number(std::string name, const DescribedState& state, size_t i) {
  const auto field = state.description().numbers[i];
  const auto read = [state, field] {
    OptimizerParamState* found = state.find();
    return found == nullptr ? nothing(field.dtype) : number_of(field, *found);
  };
  const auto assign = [state, field](const at::Tensor& assigned) {
    if (is_nothing(assigned)) {
      state.erase();
    } else {
      field.set(state.find_or_make(), assigned.item());
    }
  };
  return {.name = std::move(name),
          .dtype = dtype_of(field.dtype),
          .shape = Shape::unknown_rank(),
          .expected = Shape{},
          .read = read,
          .assign = assign};
}

// One tensor, or the rows of one. Undefined: there is none.
template <typename Owner>
at::Tensor tensor_of(const std::string& name, const OptimizerDescription::Tensors<Owner>& field, Owner& owner,
                     at::ScalarType dtype, CopyBuffer* buffer) {
  const std::vector<at::Tensor> tensors = field.get(owner);
  if (tensors.empty() || !tensors.front().defined()) return {};
  for (const at::Tensor& tensor : tensors) {
    check_can_be_kept(name, tensor);
    if (tensor.scalar_type() == dtype) continue;
    throw FailedPreconditionError(
        fmt::format("{} is {} in the program, but its OptimizerKind says {}: give OptimizerKind::tensor() its dtype",
                    name, at::toString(tensor.scalar_type()), at::toString(dtype)));
  }
  return field.is_list ? at::stack(tensors).cpu() : buffer->copy(tensors.front());
}

// New memory for each, laid out as the parameter if the shape is its own.
at::Tensor copy_like(const at::Tensor& value, const at::Tensor& parameter) {
  if (value.sizes() == parameter.sizes())
    return at::empty_like(parameter, at::TensorOptions(value.scalar_type())).copy_(value);
  return value.to(at::TensorOptions(parameter.device()), /*non_blocking=*/false, /*copy=*/true).contiguous();
}

template <typename Owner>
void set_tensors(const OptimizerDescription::Tensors<Owner>& field, Owner& owner, const at::Tensor& value,
                 const at::Tensor& like) {
  std::vector<at::Tensor> tensors;
  const std::vector<at::Tensor> rows = field.is_list ? value.unbind(0) : std::vector<at::Tensor>{value};
  for (const at::Tensor& row : rows) tensors.push_back(copy_like(row, like));
  field.set(owner, std::move(tensors));
}

template <typename Owner>
void clear_tensors(const OptimizerDescription::Tensors<Owner>& field, Owner& owner) {
  field.set(owner, std::vector<at::Tensor>(field.is_list ? 0 : 1));
}

TorchValue state_tensor(std::string name, const DescribedState& state, size_t i) {
  const auto field = state.description().tensors[i];
  const at::ScalarType dtype = field.dtype.value_or(state.parameter().scalar_type());
  TorchValue value{.name = std::move(name), .dtype = dtype_of(dtype), .shape = Shape::unknown_rank()};
  if (!field.is_list && !state.description().state_is_shared) value.expected = shape_of(state.parameter());
  value.read = [state, field, dtype, name = state.description().name + "/" + value.name,
                buffer = CopyBuffer()]() mutable {
    OptimizerParamState* found = state.find();
    const at::Tensor read = found == nullptr ? at::Tensor() : tensor_of(name, field, *found, dtype, &buffer);
    return read.defined() ? read : nothing(dtype);
  };
  value.assign = [state, field](const at::Tensor& assigned) {
    if (!is_nothing(assigned)) {
      set_tensors(field, state.find_or_make(), assigned, state.parameter());
    } else if (OptimizerParamState* found = state.find()) {
      clear_tensors(field, *found);
      state.erase_if_empty();
    }
  };
  return value;
}

OptimizerOptions& options_of(const OptimizerDescription& description, Optimizer& optimizer, size_t group) {
  OptimizerOptions& options = optimizer.param_groups().at(group).options();
  if (description.fits_options(options)) return options;
  throw InvalidArgumentError(
      fmt::format("group {} of the optimizer {} has options of another class than its OptimizerKind says: {}", group,
                  description.name, c10::demangle(typeid(options).name())));
}

TorchValue option_value(std::string name, const Description& description, Optimizer& optimizer, size_t group,
                        size_t i) {
  const auto field = description->options[i];
  return {.name = std::move(name),
          .dtype = dtype_of(field.dtype),
          .shape = {},
          .read = [field, description, &optimizer,
                   group] { return number_of(field, options_of(*description, optimizer, group)); },
          .assign =
              [field, description, &optimizer, group](const at::Tensor& assigned) {
                field.set(options_of(*description, optimizer, group), assigned.item());
              }};
}

TorchValue own_number(const OptimizerDescription::Number<Optimizer>& field, Optimizer& optimizer) {
  return {.name = "own/" + field.name,
          .dtype = dtype_of(field.dtype),
          .shape = {},
          .read = [field, &optimizer] { return number_of(field, optimizer); },
          .assign = [field, &optimizer](const at::Tensor& assigned) { field.set(optimizer, assigned.item()); }};
}

TorchValue own_tensor(const OptimizerDescription::Tensors<Optimizer>& field, Optimizer& optimizer) {
  const at::ScalarType dtype = field.dtype.value_or(at::kFloat);
  TorchValue value{.name = "own/" + field.name, .dtype = dtype_of(dtype), .shape = Shape::unknown_rank()};
  value.read = [field, &optimizer, dtype, name = value.name, buffer = CopyBuffer()]() mutable {
    const at::Tensor read = tensor_of(name, field, optimizer, dtype, &buffer);
    return read.defined() ? read : nothing(dtype);
  };
  value.assign = [field, &optimizer](const at::Tensor& assigned) {
    if (is_nothing(assigned)) return clear_tensors(field, optimizer);
    const at::Tensor before = field.get(optimizer).front();
    set_tensors(field, optimizer, assigned, before.defined() ? before : assigned);
  };
  return value;
}

void add_state(const DescribedState& state, const std::string& of, std::vector<TorchValue>* values) {
  for (size_t i = 0; i < state.description().tensors.size(); ++i)
    values->push_back(state_tensor(of + "/" + state.description().tensors[i].name, state, i));
  for (size_t i = 0; i < state.description().numbers.size(); ++i)
    values->push_back(state_number(of + "/" + state.description().numbers[i].name, state, i));
}

size_t mixed(size_t a, size_t b) {
  return (a ^ b) * 0x9e3779b97f4a7c15;  // odd, so no bit is lost
}

}  // namespace

std::vector<TorchValue> described_values(const Description& description, Optimizer& optimizer,
                                         const torch::nn::Module& module) {
  std::vector<TorchValue> values;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (size_t group = 0; group < optimizer.param_groups().size(); ++group) {
    options_of(*description, optimizer, group);
    for (size_t i = 0; i < description->options.size(); ++i) {
      values.push_back(option_value(fmt::format("group_{}/{}", group, description->options[i].name), description,
                                    optimizer, group, i));
    }
    for (const at::Tensor& parameter : optimizer.param_groups()[group].params()) {
      const std::string name = parameter_name(parameter, module);
      if (description->state_is_shared && !seen.empty()) continue;
      if (seen.insert(parameter.unsafeGetTensorImpl()).second)
        add_state(DescribedState(description, optimizer, parameter, name), name, &values);
    }
  }
  for (const auto& field : description->own_numbers) values.push_back(own_number(field, optimizer));
  for (const auto& field : description->own_tensors) values.push_back(own_tensor(field, optimizer));
  return values;
}

std::optional<uint64_t> described_count(const OptimizerDescription& description, Optimizer& optimizer,
                                        const at::Tensor& parameter) {
  if (description.numbers.empty() && description.tensors.empty()) return std::nullopt;
  const auto& groups = optimizer.param_groups();
  const bool has_first = !groups.empty() && !groups.front().params().empty();
  const at::Tensor& kept_under = description.state_is_shared && has_first ? groups.front().params().front() : parameter;
  OptimizerParamState* found = StateOf<OptimizerParamState>(optimizer, kept_under).find();
  if (found == nullptr || !description.fits_state(*found)) return 0;
  size_t count = 1;
  for (const auto& field : description.numbers)
    count = mixed(count, std::hash<double>()(field.get(*found).to<double>()));
  for (const auto& field : description.tensors) {
    for (const at::Tensor& tensor : field.get(*found)) {
      count = mixed(count, std::hash<const void*>()(tensor.unsafeGetTensorImpl()));
      if (tensor.defined() && !tensor.is_inference())
        count = mixed(count, tensor.unsafeGetTensorImpl()->version_counter().current_version());
    }
  }
  return std::max<uint64_t>(count, 1);
}

}  // namespace longhaul
