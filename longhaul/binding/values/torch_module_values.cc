#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>

#include "longhaul/base/log.h"
#include "longhaul/binding/overlap/pending_copy.h"
#include "longhaul/binding/values/lent_tensors.h"
#include "longhaul/binding/values/torch_values.h"
#include "longhaul/binding/watches/generator_watch.h"
#include "longhaul/runtime/aten/aten_tensor.h"
#include "longhaul/runtime/devices/pinned_memory.h"
#include "longhaul/runtime/state/variable_store.h"

namespace longhaul {
namespace {

std::string type_text(DType dtype, const Shape& shape) {
  return fmt::format("{} {}", dtype_name(dtype), shape.to_string());
}

void check_unchanged(const TorchValue& bound, const at::Tensor& tensor) {
  const DType dtype = dtype_of(tensor.scalar_type());
  const Shape shape = shape_of(tensor);
  if (dtype == bound.dtype && shape == bound.shape) return;
  throw FailedPreconditionError(
      fmt::format("{} was {} when it was bound, but is {} now. Bind a module in its final form", bound.name,
                  type_text(bound.dtype, bound.shape), type_text(dtype, shape)));
}

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

NamedTensors tensors_of(const torch::nn::Module& module) {
  NamedTensors tensors;
  for (const auto& parameter : module.named_parameters()) tensors.emplace_back(parameter.key(), parameter.value());
  for (const auto& buffer : module.named_buffers()) tensors.emplace_back(buffer.key(), buffer.value());
  return tensors;
}

const at::Tensor* find(const NamedTensors& tensors, const std::string& name) {
  const auto it = std::find_if(tensors.begin(), tensors.end(), [&](const auto& named) { return named.first == name; });
  return it == tensors.end() ? nullptr : &it->second;
}

[[noreturn]] void throw_changed(const std::string& name, const char* what) {
  throw FailedPreconditionError(
      fmt::format("{} {} after its module was bound. Bind a module in its final form", name, what));
}

}  // namespace

void check_can_be_kept(const std::string& name, const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided) {
    throw InvalidArgumentError(fmt::format(
        "{} cannot be saved in a checkpoint: its layout is {}. If it comes from a module with sparse gradients, use an "
        "optimizer with dense state (SGD without momentum, Adagrad), or a module without sparse gradients",
        name, c10::str(tensor.layout())));
  }
  try {
    dtype_of(tensor.scalar_type());
  } catch (const InvalidArgumentError&) {
    throw InvalidArgumentError(
        fmt::format("{} cannot be saved in a checkpoint: the format has no equivalent of libtorch's dtype {}", name,
                    at::toString(tensor.scalar_type())));
  }
}

ModuleForm::ModuleForm(const torch::nn::Module& module)
    : module_(&module), owner_(module.weak_from_this().lock()), tensors_(tensors_of(module)) {}

void ModuleForm::check() const {
  const NamedTensors now = tensors_of(*module_);
  const auto same = [](const auto& a, const auto& b) { return a.second.is_same(b.second) && a.first == b.first; };
  if (std::equal(now.begin(), now.end(), tensors_.begin(), tensors_.end(), same)) return;
  for (const auto& [name, tensor] : now) {
    const at::Tensor* bound = find(tensors_, name);
    if (bound == nullptr) throw_changed(name, "was registered");
    if (!bound->is_same(tensor)) throw_changed(name, "was replaced by another tensor");
  }
  for (const auto& [name, tensor] : tensors_) {
    if (find(now, name) == nullptr) throw_changed(name, "was removed");
  }
}

const at::Tensor& CopyBuffer::memory_for(const at::Tensor& source) {
  const bool fits = buffer_.defined() && VariableSlot::exclusive(buffer_) && buffer_.sizes() == source.sizes() &&
                    buffer_.scalar_type() == source.scalar_type();
  if (!fits) buffer_ = host_memory_for(source);
  return buffer_;
}

at::Tensor CopyBuffer::copy(const at::Tensor& source) {
  return memory_for(source).copy_(source);
}

at::Tensor CopyBuffer::copy_later(const std::string& name, const at::Tensor& source, PendingCopy& later) {
  at::Tensor copy = memory_for(source);
  later.add(name, source, copy);
  return copy;
}

void CopyBuffer::read_by(TorchValue& value, const std::function<at::Tensor()>& find, at::ScalarType type) {
  const auto none = [type] { return at::empty({0}, at::TensorOptions(type)); };
  const auto buffer = std::make_shared<CopyBuffer>();
  value.read = [find, none, buffer] {
    const at::Tensor found = find();
    return found.defined() ? buffer->copy(found) : none();
  };
  value.copy_later = [find, none, buffer, name = value.name](PendingCopy& later) {
    const at::Tensor found = find();
    return found.defined() ? buffer->copy_later(name, found, later) : none();
  };
}

TorchValue tensor_value(std::string name, const at::Tensor& tensor) {
  check_can_be_kept(name, tensor);
  TorchValue value{.name = std::move(name), .dtype = dtype_of(tensor.scalar_type()), .shape = shape_of(tensor)};
  value.tensor = tensor;
  const auto find = [bound = value] {
    at::Tensor tensor = own_memory_of(bound.tensor);
    check_unchanged(bound, tensor);
    return tensor;
  };
  CopyBuffer::read_by(value, find, tensor.scalar_type());
  value.assign = [tensor](const at::Tensor& assigned) { own_memory_of(tensor).copy_(assigned); };
  return value;
}

namespace {

// Batch norm writes its statistics without saying so: on a device a copy stays there, and that is copied later.
std::function<at::Tensor(PendingCopy&)> copied_apart(const std::string& name, const at::Tensor& buffer) {
  if (buffer.is_cpu()) return nullptr;
  return [name, buffer, copies = std::make_shared<CopyBuffer>()](PendingCopy& later) {
    return copies->copy_later(name, own_memory_of(buffer).clone(), later);
  };
}

}  // namespace

std::vector<TorchValue> module_values(torch::nn::Module& module) {
  std::vector<TorchValue> values;
  for (const auto& parameter : module.named_parameters()) {
    values.push_back(tensor_value(parameter.key(), parameter.value()));
    values.back().is_parameter = true;
    values.back().trainable = parameter.value().requires_grad();
  }
  for (const auto& buffer : module.named_buffers()) {
    values.push_back(tensor_value(buffer.key(), buffer.value()));
    values.back().copy_later = copied_apart(buffer.key(), buffer.value());
  }
  return values;
}

TorchValue generator_value(std::string name, std::shared_ptr<GeneratorWatch> generator) {
  const auto read = [generator] { return generator->state(); };
  const auto assign = [generator](const at::Tensor& state) { generator->restore(state); };
  return {.name = std::move(name), .dtype = kUInt8, .shape = shape_of(read()), .read = read, .assign = assign};
}

TorchValue device_generator_value(std::string name, std::shared_ptr<GeneratorWatch> generator) {
  TorchValue value = generator_value(std::move(name), generator);
  value.expected = std::exchange(value.shape, Shape::unknown_rank());
  value.assign = [generator, name = value.name, size = value.expected->num_elements()](const at::Tensor& state) {
    if (state.numel() == 0) return;  // the checkpoint lacks it, which the restore has said
    if (state.numel() == size) return generator->restore(state);
    log_warning(
        "generators/{} has {} bytes in the checkpoint, but {} with this libtorch: it is not restored, so steps that "
        "draw random numbers on that device draw others than an uninterrupted run",
        name, state.numel(), size);
  };
  return value;
}

void check_like(const std::string& name, const at::Tensor& value, const at::Tensor& parameter) {
  if (value.sizes() == parameter.sizes()) return;
  throw InvalidArgumentError(fmt::format("{} is {}, but its parameter is {}", name, shape_of(value).to_string(),
                                         shape_of(parameter).to_string()));
}

bool is_absent(const at::Tensor& value, const at::Tensor& like) {
  return value.dim() == 1 && value.numel() == 0 && like.numel() > 0;
}

// Its shape may change from step to step.
void tell_of_other_shape(const std::string& name, const at::Tensor& state, const at::Tensor& assigned) {
  if (state.sizes() == assigned.sizes()) return;
  const std::string text =
      fmt::format("{} is {} in the program, but the restored value is {}; the restored value is used", name,
                  shape_of(state).to_string(), shape_of(assigned).to_string());
  state.dim() == assigned.dim() ? log_info("{}", text) : log_warning("{}", text);
}

TorchValue state_value(std::string name, at::Tensor* state) {
  if (!state->defined()) {
    throw InvalidArgumentError(
        fmt::format("{} is undefined. Give it the value that it has before the first step", name));
  }
  check_can_be_kept(name, *state);
  TorchValue value{.name = std::move(name), .dtype = dtype_of(state->scalar_type()), .shape = Shape::unknown_rank()};
  value.read = [state, name = value.name, dtype = value.dtype, buffer = CopyBuffer()]() mutable {
    if (!state->defined() || dtype_of(state->scalar_type()) != dtype) {
      throw FailedPreconditionError(fmt::format("{} was {} when it was bound, but is {} now", name, dtype_name(dtype),
                                                state->defined() ? at::toString(state->scalar_type()) : "undefined"));
    }
    return buffer.copy(*state);
  };
  value.assign = [state, name = value.name](const at::Tensor& assigned) {
    if (state->defined() && is_absent(assigned, *state)) return;
    if (state->defined()) tell_of_other_shape(name, *state, assigned);
    const at::TensorOptions like = state->defined() ? state->options() : assigned.options();
    const bool requires_grad = state->defined() && state->is_leaf() && state->requires_grad();
    *state = assigned.to(like, /*non_blocking=*/false, /*copy=*/true).requires_grad_(requires_grad);
  };
  return value;
}

TorchValue gradient_value(std::string name, const at::Tensor& parameter) {
  TorchValue value{.name = std::move(name), .dtype = dtype_of(parameter.scalar_type()), .shape = Shape::unknown_rank()};
  value.expected = shape_of(parameter);
  const auto find = [parameter, name = value.name]() -> at::Tensor {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined() || (gradient.layout() == at::kSparse && gradient._nnz() == 0)) return {};
    check_can_be_kept(name, gradient);
    return gradient;
  };
  CopyBuffer::read_by(value, find, parameter.scalar_type());
  value.assign = [parameter, name = value.name](const at::Tensor& assigned) {
    if (is_absent(assigned, parameter)) {
      parameter.mutable_grad() = at::Tensor();
    } else {
      check_like(name, assigned, parameter);
      parameter.mutable_grad() = at::empty_like(parameter).copy_(assigned);
    }
  };
  return value;
}

}  // namespace longhaul
