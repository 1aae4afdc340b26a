#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "longhaul/runtime/kernels/kernel.h"
#include "longhaul/runtime/kernels/tape_gradient.h"

namespace longhaul {
namespace {

void host_function(KernelContext& context) {
  std::vector<Tensor> inputs;
  for (int i = 0; i < context.num_inputs(); ++i) inputs.push_back(context.input(i).to_host());
  const std::vector<Tensor> results = (*context.op().attr<std::shared_ptr<HostFunction>>("function"))(inputs);
  if (static_cast<int>(results.size()) != context.op().num_outputs()) {
    context.refuse(fmt::format("the function returned {} tensors, not {}", results.size(), context.op().num_outputs()));
  }
  for (int i = 0; i < context.op().num_outputs(); ++i) {
    const Tensor& result = results[static_cast<size_t>(i)];
    if (result.dtype() != context.op().output(i).dtype())
      context.refuse(fmt::format("result {} is {}", i, dtype_name(result.dtype())));
    context.set_output(i, Value(result));
  }
}

void check_program_step(const KernelContext& context) {
  context.variable(0).read();
}

// The function may use libtorch as code outside of a plan does, and records for a backward whatever the caller's mode.
void program_step(KernelContext& context) {
  VariableSlot& counter = context.variable(0);
  std::vector<Tensor> arguments{Tensor::scalar(*counter.read().tensor.data_ptr<int64_t>())};
  for (int i = 1; i < context.num_inputs(); ++i) arguments.push_back(context.input(i).to_host());
  {
    c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
    keys.excluded_ = keys.excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
    const c10::impl::ForceDispatchKeyGuard with_autograd(keys);
    const at::AutoGradMode recording(true);
    (*context.op().attr<std::shared_ptr<HostFunction>>("function"))(arguments);
  }
  counter.update([](const at::Tensor& source, at::Tensor& destination) {
    *destination.data_ptr<int64_t>() = *source.data_ptr<int64_t>() + 1;
  });
}

// Lets autograd record again for the lifetime of this object; plans run below it.
class RecordForAutograd {
 public:
  RecordForAutograd() : before_(c10::impl::tls_local_dispatch_key_set()), grad_mode_(true) {
    c10::impl::_force_tls_local_dispatch_key_set(c10::impl::LocalDispatchKeySet(c10::impl::PODLocalDispatchKeySet{}));
  }
  ~RecordForAutograd() { c10::impl::_force_tls_local_dispatch_key_set(before_); }
  RecordForAutograd(const RecordForAutograd&) = delete;

 private:
  const c10::impl::LocalDispatchKeySet before_;
  const at::AutoGradMode grad_mode_;
};

c10::IValue forward_argument(const AtenArgument& argument, const std::vector<at::Tensor>& inputs) {
  const auto first = static_cast<size_t>(argument.first_input);
  switch (argument.source) {
    case AtenArgument::Source::kConstant: return argument.constant;
    case AtenArgument::Source::kTensor: return inputs[first];
    case AtenArgument::Source::kTensorList:
      return c10::List<at::Tensor>(std::vector<at::Tensor>(inputs.begin() + argument.first_input,
                                                           inputs.begin() + argument.first_input + argument.count));
    case AtenArgument::Source::kOptionalTensorList: {
      c10::List<c10::optional<at::Tensor>> list;
      for (int i = 0; i < argument.count; ++i) list.push_back(inputs[first + static_cast<size_t>(i)]);
      return list;
    }
    case AtenArgument::Source::kInts: {
      const int64_t* data = inputs[first].data_ptr<int64_t>();
      return std::vector<int64_t>(data, data + inputs[first].numel());
    }
    case AtenArgument::Source::kInt: return inputs[first].item<int64_t>();
    case AtenArgument::Source::kScalar: return inputs[first].item();
    case AtenArgument::Source::kGenerator: break;
  }
  throw InvalidArgumentError("an operation that draws random numbers cannot be run again for its gradient");
}

std::vector<at::Tensor> run_forward(const AtenCall& call, const std::vector<at::Tensor>& inputs) {
  torch::jit::Stack stack;
  for (const AtenArgument& argument : call.arguments) stack.push_back(forward_argument(argument, inputs));
  call.op.callBoxed(&stack);
  std::vector<at::Tensor> results;
  for (const c10::IValue& value : stack) {
    if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) results.push_back(tensor);
    } else {
      results.push_back(value.toTensor());
    }
  }
  return results;
}

// Runs the forward operation again on a tape, and the tape backwards. Inputs: those of the forward operation
// (`num_inputs`), then the gradients of its outputs numbered in `outputs`.
void tape_gradient(KernelContext& context) {
  const AtenCall call = forward_call_of(context.op());
  const auto count = static_cast<int>(context.op().attr<int64_t>("num_inputs"));
  const auto& wrt = context.op().attr<std::vector<int64_t>>("wrt");
  const auto& outputs = context.op().attr<std::vector<int64_t>>("outputs");
  RecordForAutograd recording;
  std::vector<at::Tensor> inputs, sources, results, gradients;
  for (int i = 0; i < count; ++i) inputs.push_back(context.tensor(i).detach());
  for (int64_t i : wrt) sources.push_back(inputs[static_cast<size_t>(i)].requires_grad_(true));
  const std::vector<at::Tensor> forward = run_forward(call, inputs);
  for (size_t k = 0; k < outputs.size(); ++k) {
    results.push_back(forward[static_cast<size_t>(outputs[k])]);
    gradients.push_back(context.tensor(count + static_cast<int>(k)));
  }
  const auto found = torch::autograd::grad(results, sources, gradients, /*retain_graph=*/false, /*create_graph=*/false,
                                           /*allow_unused=*/true);
  for (size_t i = 0; i < found.size(); ++i) {
    context.set_output(static_cast<int>(i),
                       Value(found[i].defined() ? found[i].detach() : at::zeros_like(sources[i]).detach()));
  }
}

}  // namespace

AtenCall forward_call_of(const Operation& op) {
  OperationSpec spec{op.attr<std::string>("forward"), op.name(), {}, op.attrs(), {}, {}};
  for (const char* own : {"forward", "wrt", "num_inputs", "outputs"}) spec.attrs.erase(own);
  const auto count = op.attr<int64_t>("num_inputs");
  spec.inputs.assign(op.inputs().begin(), op.inputs().begin() + count);
  auto call = bind_aten_call(spec);
  if (call) return *std::move(call);
  throw InvalidArgumentError(fmt::format("{} ({}): this libtorch has no operator {}", op.name(), op.type(), spec.type));
}

KernelTable function_kernels() {
  return {
      {"HostFunction", {host_function, nullptr, KernelPlace::kHostForAny}},
      {"ProgramStep", {program_step, check_program_step, KernelPlace::kHostForAny}},
      {"TapeGradient", {tape_gradient, nullptr, KernelPlace::kLikeOperator}},
  };
}

}  // namespace longhaul
