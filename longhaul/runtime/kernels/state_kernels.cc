#include <ATen/ops/add.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>

#include "longhaul/runtime/kernels/kernel.h"

namespace longhaul {
namespace {

Shape declared_shape(const KernelContext& context) {
  return context.op().inputs()[0].shape();
}

void check_assign(const KernelContext& context) {
  const Value& value = context.input(1);
  const DType wanted = context.op().inputs()[0].dtype();
  if (value.dtype() != wanted) {
    context.refuse(fmt::format("{} is {}, but the value is {}", context.variable(0).name(), dtype_name(wanted),
                               dtype_name(value.dtype())));
  }
  const bool* validate = context.op().find_attr<bool>("validate_shape");
  if ((validate == nullptr || *validate) && !value.shape().compatible_with(declared_shape(context))) {
    context.refuse(fmt::format("Assign requires shapes of both tensors to match. {} is {}, but the value is {}",
                               context.variable(0).name(), declared_shape(context).to_string(),
                               value.shape().to_string()));
  }
}

void assign(KernelContext& context) {
  VariableSlot& variable = context.variable(0);
  Value assigned = variable.assign(context.take_input(1));
  context.resources().variables().mark_consistent(variable);
  context.set_output(0, std::move(assigned));
}

void check_update(const KernelContext& context) {
  check_assign(context);
  const Value current = context.variable(0).read();
  if (current.is_host())
    context.refuse(fmt::format("{} variables do not support arithmetic", dtype_name(current.dtype())));
}

// `sign` is 1 or -1.
void add_scaled(KernelContext& context, int sign) {
  const at::Tensor& delta = context.tensor(1);
  context.set_output(
      0, Value(context.variable(0).update([&](const at::Tensor& source, at::Tensor& destination) {
        if (delta.numel() == 1 && source.numel() == 1 && delta.scalar_type() == at::kLong && source.is_cpu()) {
          *destination.data_ptr<int64_t>() = *source.data_ptr<int64_t>() + sign * *delta.data_ptr<int64_t>();
        } else {
          at::add_out(destination, source, delta, sign);
        }
      })));
}

void assign_add(KernelContext& context) {
  add_scaled(context, 1);
}
void assign_sub(KernelContext& context) {
  add_scaled(context, -1);
}

void check_count_up_to(const KernelContext& context) {
  const int64_t limit = context.op().attr<int64_t>("limit");
  const Tensor current = context.variable(0).read().to_host();
  if (current.item<int64_t>() >= limit)
    throw OutOfRangeError(fmt::format("{}: reached limit of {}", context.name(), limit));
}

void count_up_to(KernelContext& context) {
  const int64_t limit = context.op().attr<int64_t>("limit");
  context.variable(0).update([&](const at::Tensor& source, at::Tensor& destination) {
    if (source.item<int64_t>() >= limit)
      throw OutOfRangeError(fmt::format("{}: reached limit of {}", context.name(), limit));
    context.set_output(0, Value(source.clone()));
    at::add_out(destination, source, at::ones({}, source.options()));
  });
}

// The variable's value, or what it would be initialised with.
void initialized_value(KernelContext& context) {
  VariableSlot& variable = context.variable(0);
  context.set_output(0, variable.initialized() ? variable.read() : context.take_input(1));
}

void is_variable_initialized(KernelContext& context) {
  context.set_output(0, Value(Tensor::scalar(context.variable(0).initialized())));
}

void report_uninitialized_variables(KernelContext& context) {
  std::vector<std::string> names;
  for (size_t i = 0; i < context.variables().size(); ++i) {
    if (!context.variables()[i]->initialized()) names.push_back(context.op().inputs()[i].op().name());
  }
  context.set_output(0, Value(Tensor::of(std::move(names))));
}

void shape(KernelContext& context) {
  context.set_output(0, Value(Tensor::of(context.input(0).shape().dims())));
}

}  // namespace

KernelTable state_kernels() {
  return {
      {"Assign", {assign, check_assign, KernelPlace::kOfVariable, 1}},
      {"AssignAdd", {assign_add, check_update, KernelPlace::kOfVariable, 1}},
      {"AssignSub", {assign_sub, check_update, KernelPlace::kOfVariable, 1}},
      {"CountUpTo", {count_up_to, check_count_up_to, KernelPlace::kOfVariable}},
      {"InitializedValue", {initialized_value, nullptr, KernelPlace::kOfVariable, 1}},
      {"IsVariableInitialized", {is_variable_initialized}},
      {"ReportUninitializedVariables", {report_uninitialized_variables}},
      {"Shape", {shape, nullptr, KernelPlace::kHostForAny}},
  };
}

}  // namespace longhaul
