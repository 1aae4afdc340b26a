#include "longhaul/testing/fake_device/deferred_call.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "longhaul/testing/fake_device/fake_generators.h"
#include "longhaul/testing/fake_device/fake_memory.h"
#include "longhaul/testing/fake_device/fake_streams.h"

namespace longhaul::fake_device {
namespace {

using c10::IValue;
using torch::jit::Stack;
using EachTensor = std::function<at::Tensor(const at::Tensor&)>;

std::atomic<int64_t> operators{0};
std::atomic<int64_t> waits{0};

// Their results' sizes depend on values, on a GPU, too.
constexpr std::array<std::string_view, 5> kSizedByValues = {"aten::nonzero", "aten::masked_select", "aten::_unique2",
                                                            "aten::unique_dim", "aten::unique_consecutive"};

bool is_ours(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::DeviceType::PrivateUse1;
}

// Below autograd, and unseen by those who watch what operators the program calls.
struct Quietly {
  at::AutoDispatchBelowAutograd below_autograd;
  at::DisableRecordFunctionGuard unrecorded;
};

// ---- Values of a call, tensor by tensor ----

bool has_tensors(const IValue& value) {
  return value.isTensor() || value.isTensorList() || value.isOptionalTensorList();
}

IValue mapped(const IValue& value, const EachTensor& map) {
  if (value.isTensor()) return map(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(map(tensor));
    return list;
  }
  c10::List<c10::optional<at::Tensor>> list;
  for (const IValue& element : value.toListRef()) {
    list.push_back(element.isNone() ? c10::optional<at::Tensor>() : map(element.toTensor()));
  }
  return list;
}

void for_each_tensor(const IValue& value, const std::function<void(const at::Tensor&)>& look) {
  mapped(value, [&](const at::Tensor& tensor) {
    look(tensor);
    return tensor;
  });
}

// ---- The CPU's kernel ----

const c10::AliasInfo* alias_of(const c10::OperatorHandle& op, size_t result) {
  return op.schema().returns()[result].alias_info();
}

c10::OperatorHandle operator_named(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

// Of an argument that may be left out.
at::Tensor or_zeros(const IValue& value, const at::Tensor& like) {
  return value.isTensor() && value.toTensor().defined() ? value.toTensor() : at::zeros_like(like);
}

// libtorch 2 takes these for devices of its GPUs' kind alone, and has no kernels of the CPU for them: as its CUDA
// kernels, by their results hy, cy and what the backward needs; and grad_gates, grad_cx, grad_bias.
void lstm_cell(Stack& stack) {
  at::Tensor gates = stack[0].toTensor() + stack[1].toTensor();
  const at::Tensor cx = stack[2].toTensor();
  for (const size_t bias : {3, 4}) {
    if (stack[bias].isTensor() && stack[bias].toTensor().defined()) gates = gates + stack[bias].toTensor();
  }
  const std::vector<at::Tensor> parts = gates.chunk(4, 1);
  const at::Tensor in = parts[0].sigmoid(), forget = parts[1].sigmoid(), cell = parts[2].tanh(),
                   out = parts[3].sigmoid();
  const at::Tensor cy = forget * cx + in * cell;
  stack = {out * cy.tanh(), cy, at::cat({in, forget, cell, out}, 1)};
}

void lstm_cell_backward(Stack& stack) {
  const at::Tensor cx = stack[2].toTensor(), cy_tanh = stack[3].toTensor().tanh();
  const at::Tensor grad_hy = or_zeros(stack[0], cx), grad_cy = or_zeros(stack[1], cx);
  const std::vector<at::Tensor> gates = stack[4].toTensor().chunk(4, 1);
  const at::Tensor &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
  const at::Tensor grad_c = grad_hy * out * (1 - cy_tanh * cy_tanh) + grad_cy;
  const at::Tensor grad_gates = at::cat({grad_c * cell * in * (1 - in), grad_c * cx * forget * (1 - forget),
                                         grad_c * in * (1 - cell * cell), grad_hy * cy_tanh * out * (1 - out)},
                                        1);
  const bool has_bias = stack[5].toBool();
  stack = {grad_gates, grad_c * forget, has_bias ? grad_gates.sum(0) : at::Tensor()};
}

// The results of an operator with several `out` arguments are references to these, of which the stack has let go:
// something has to hold them meanwhile.
void call_boxed(const c10::OperatorHandle& op, Stack& stack) {
  const Stack held = stack;
  op.callBoxed(stack);
}

void run_on_host(const c10::OperatorHandle& op, Stack& stack) {
  if (op.schema().name() == "aten::_thnn_fused_lstm_cell") return lstm_cell(stack);
  if (op.schema().name() == "aten::_thnn_fused_lstm_cell_backward_impl") return lstm_cell_backward(stack);
  if (op.schema().name() == "aten::convolution_overrideable")
    return operator_named("aten::convolution").callBoxed(stack);
  if (op.schema().name() != "aten::convolution_backward_overrideable") return call_boxed(op, stack);
  const int64_t channels = stack[0].toTensor().size(1);
  stack.insert(stack.begin() + 3, IValue(std::vector<int64_t>{channels}));  // the sizes of the bias
  operator_named("aten::convolution_backward").callBoxed(stack);
}

// Those that are no arguments: to the device, in their order.
void write_new_results(const c10::OperatorHandle& op, const Stack& made, std::vector<at::Tensor>& places) {
  auto place = places.begin();
  for (size_t i = 0; i < made.size(); ++i) {
    if (alias_of(op, i) != nullptr || !has_tensors(made[i])) continue;
    for_each_tensor(made[i], [&](const at::Tensor& tensor) {
      if (tensor.defined()) (place++)->copy_(tensor);
    });
  }
}

// ---- One call ----

class Call {
 public:
  Call(const c10::OperatorHandle& op, Stack* stack)
      : op_(op), name_(op.schema().name()), arguments_(torch::jit::last(*stack, op.schema().arguments().size()).vec()) {
    torch::jit::drop(*stack, arguments_.size());
    check_devices();
    choose_generator();
  }

  void make(Stack* results) {
    const std::optional<Stack> meta = draws() || has_plain_results() ? std::nullopt : results_on_meta();
    if (draws() && fills()) {
      fill(results);
    } else if (meta) {
      enqueue(*meta, results);
    } else {
      run_now(results);
    }
  }

 private:
  c10::Stream stream() const { return FakeStreams::instance().current(device_); }

  // CPU tensors of one element count as numbers; others must be on the same device, but for indices, as on a GPU.
  void check_devices() {
    const auto look = [&](const at::Tensor& tensor) {
      if (is_ours(tensor)) device_ = tensor.device();
    };
    for (const IValue& value : arguments_) {
      if (has_tensors(value)) for_each_tensor(value, look);
      if (value.isDevice() && value.toDevice().has_index()) device_ = value.toDevice();
    }
    const bool indexes = name_.find("index") != std::string::npos;
    const auto check = [&](const at::Tensor& tensor) {
      if (!tensor.defined() || tensor.device() == device_ || (tensor.is_cpu() && (tensor.dim() == 0 || indexes)))
        return;
      TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ", device_,
                  " and ", tensor.device(), "! (when checking arguments of ", name_, ")");
    };
    for (const IValue& value : arguments_) {
      if (has_tensors(value)) for_each_tensor(value, check);
    }
  }

  void choose_generator() {
    const auto& arguments = op_.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].name() != "generator") continue;
      const at::Generator given = arguments_[i].isNone() ? at::Generator() : arguments_[i].toGenerator();
      const at::Generator on_host = generator_on_host(given, device_);
      if (on_host.defined()) arguments_[i] = on_host;
    }
  }

  Stack arguments_on(c10::Device device, const EachTensor& map) const {
    Stack stack;
    for (const IValue& value : arguments_) {
      if (has_tensors(value)) {
        stack.push_back(mapped(value, map));
      } else {
        stack.push_back(value.isDevice() ? IValue(device) : value);
      }
    }
    return stack;
  }

  static at::Tensor meta_of(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    const at::TensorOptions options = at::TensorOptions(at::kMeta).dtype(tensor.dtype());
    if (!is_ours(tensor)) return marked(at::empty_strided(tensor.sizes(), tensor.strides(), options), tensor);
    const auto size = static_cast<int64_t>(tensor.storage().nbytes() / tensor.itemsize());
    return at::empty({size}, options).as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  }

  static at::Tensor host_of(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    return is_ours(tensor) ? on_host(tensor) : marked(tensor.clone(), tensor);
  }

  // A number of the program does not decide about the result's dtype.
  static at::Tensor marked(at::Tensor tensor, const at::Tensor& like) {
    if (like.unsafeGetTensorImpl()->is_wrapped_number()) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
    return tensor;
  }

  std::optional<Stack> results_on_meta() const {
    Stack stack = arguments_on(at::kMeta, &meta_of);
    try {
      call_boxed(op_, stack);
    } catch (const std::exception&) {
      return std::nullopt;  // no such kernel, or an error of the program's, which the CPU's kernel tells better
    }
    return stack;
  }

  void enqueue(const Stack& meta, Stack* results) {
    std::vector<at::Tensor> places;
    for (size_t i = 0; i < meta.size(); ++i) results->push_back(result(i, meta[i], &places));
    // Nothing here keeps the arguments' memory, as a GPU's kernel does not.
    FakeStreams::instance().enqueue(
        stream(), [op = op_, stack = arguments_on(at::kCPU, &host_of), places = std::move(places)]() mutable {
          const Quietly quietly;
          run_on_host(op, stack);
          write_new_results(op, stack, places);
        });
  }

  void run_now(Stack* results) {
    if (has_plain_results() || std::count(kSizedByValues.begin(), kSizedByValues.end(), name_) > 0) ++waits;
    FakeStreams::instance().wait(stream());
    Stack made = arguments_on(at::kCPU, &host_of);
    replace_out_arguments(made);
    draw_or_compute(made);
    std::vector<at::Tensor> places;
    for (size_t i = 0; i < made.size(); ++i) {
      results->push_back(has_tensors(made[i]) ? result(i, made[i], &places) : made[i]);
      if (is_out(i)) on_host(results->back().toTensor()).copy_(made[i].toTensor());
    }
    write_new_results(op_, made, places);
  }

  void draw_or_compute(Stack& stack) const {
    std::optional<DrawFromDevice> drawing;
    if (draws()) drawing.emplace(device_);
    run_on_host(op_, stack);
  }

  // Kernels resize them, which the host's view of a device's memory cannot be.
  void replace_out_arguments(Stack& stack) const {
    const auto& arguments = op_.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i].is_out()) continue;
      stack[i] = at::empty({0}, at::TensorOptions(at::kCPU).dtype(arguments_[i].toTensor().dtype()));
    }
  }

  // What is drawn depends on the generator alone, which is the host's: it is drawn now.
  void fill(Stack* results) {
    const at::Tensor self = arguments_[0].toTensor();
    const at::Tensor drawn = at::empty_strided(self.sizes(), self.strides(), self.options().device(at::kCPU));
    Stack stack = arguments_on(at::kCPU, [&](const at::Tensor& tensor) { return is_ours(tensor) ? drawn : tensor; });
    run_on_host(op_, stack);
    FakeStreams::instance().enqueue(stream(), [place = on_host(self), drawn] {
      const Quietly quietly;
      place.copy_(drawn);
    });
    results->push_back(self);
  }

  // ---- What the operator's schema says ----

  bool draws() const {
    const auto& arguments = op_.schema().arguments();
    return name_.find("dropout") != std::string::npos ||
           std::any_of(arguments.begin(), arguments.end(), [](const auto& a) { return a.name() == "generator"; });
  }

  // It writes the first argument and reads no tensor.
  bool fills() const {
    int64_t tensors = 0;
    for (const IValue& value : arguments_) tensors += has_tensors(value) ? 1 : 0;
    return tensors == 1 && arguments_[0].isTensor() && op_.schema().returns().size() == 1 && alias_of(0) != nullptr &&
           alias_of(0)->isWrite();
  }

  // It returns numbers.
  bool has_plain_results() const {
    const auto& returns = op_.schema().returns();
    return std::any_of(returns.begin(), returns.end(), [](const auto& value) {
      return value.type()->kind() != c10::TypeKind::TensorType && value.type()->kind() != c10::TypeKind::ListType;
    });
  }

  const c10::AliasInfo* alias_of(size_t result) const { return longhaul::fake_device::alias_of(op_, result); }

  bool is_out(size_t result) const {
    const auto& arguments = op_.schema().arguments();
    const c10::AliasInfo* alias = alias_of(result);
    return alias != nullptr && std::any_of(arguments.begin(), arguments.end(), [&](const c10::Argument& argument) {
             return argument.is_out() && argument.alias_info()->beforeSets() == alias->beforeSets();
           });
  }

  // The argument that this result is, or a part of which it is.
  const IValue& argument_of(const c10::AliasInfo& alias) const {
    const auto& arguments = op_.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      const c10::AliasInfo* of_argument = arguments[i].alias_info();
      if (of_argument != nullptr && of_argument->beforeSets() == alias.beforeSets()) return arguments_[i];
    }
    TORCH_CHECK(false, "fake device: ", name_, " returns an alias of no argument");
  }

  // As `made` is, which is of another device.
  IValue result(size_t i, const IValue& made, std::vector<at::Tensor>* places) const {
    const c10::AliasInfo* alias = alias_of(i);
    if (alias != nullptr && alias->isWrite()) return grown(argument_of(*alias), made);
    return mapped(made, [&](const at::Tensor& tensor) -> at::Tensor {
      if (!tensor.defined()) return {};
      if (alias != nullptr) {
        return argument_of(*alias).toTensor().as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
      }
      at::Tensor ours = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(device_));
      places->push_back(on_host(ours));
      return ours;
    });
  }

  // An `out` argument that did not have the result's size.
  static IValue grown(const IValue& argument, const IValue& made) {
    if (argument.isTensor() && argument.toTensor().sizes() != made.toTensor().sizes()) {
      argument.toTensor().resize_(made.toTensor().sizes());
    }
    return argument;
  }

  c10::OperatorHandle op_;
  std::string name_;
  std::vector<IValue> arguments_;
  c10::Device device_ = FakeStreams::instance().device();
};

}  // namespace

at::Tensor on_host(const at::Tensor& tensor) {
  const auto size = static_cast<int64_t>(tensor.storage().nbytes() / tensor.itemsize());
  char* bytes = FakeMemory::instance().bytes_of(tensor.storage().data());
  return at::from_blob(bytes, {size}, at::TensorOptions(at::kCPU).dtype(tensor.dtype()))
      .as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

void call_deferred(const c10::OperatorHandle& op, Stack* stack) {
  const Quietly quietly;
  ++operators;
  Call(op, stack).make(stack);
}

CallCounts call_counts() {
  return {operators, waits};
}

void reset_call_counts() {
  operators = 0;
  waits = 0;
}

void count_wait() {
  ++waits;
}

}  // namespace longhaul::fake_device
