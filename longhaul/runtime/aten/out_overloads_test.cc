#include "longhaul/runtime/aten/out_overloads.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

namespace longhaul {
namespace {

using Source = AtenArgument::Source;

// A call of the operator with an input for each tensor, and with 1 for each other argument.
AtenCall call_of(const std::string& type) {
  const size_t dot = type.find('.');
  const auto op = c10::Dispatcher::singleton().findSchema(
      {type.substr(0, dot), dot == std::string::npos ? "" : type.substr(dot + 1)});
  if (!op) throw std::runtime_error("no operator " + type);
  AtenCall call{*op, {}, false};
  int inputs = 0;
  for (const c10::Argument& argument : op->schema().arguments()) {
    if (argument.type()->kind() == c10::TypeKind::TensorType) {
      call.arguments.push_back({Source::kTensor, {}, inputs++, 1});
    } else {
      call.arguments.push_back({Source::kConstant, argument.default_value().value_or(c10::IValue(1)), 0, 0});
    }
  }
  return call;
}

// The result of calling with these tensors, and `buffer` behind them if there is one.
at::Tensor result(const c10::OperatorHandle& op, const std::vector<AtenArgument>& arguments,
                  const std::vector<at::Tensor>& inputs, const at::Tensor& buffer = {}) {
  std::vector<c10::IValue> stack;
  for (const AtenArgument& argument : arguments) {
    stack.push_back(argument.source == Source::kTensor ? c10::IValue(inputs[static_cast<size_t>(argument.first_input)])
                                                       : argument.constant);
  }
  if (buffer.defined()) stack.emplace_back(buffer);
  op.callBoxed(&stack);
  return stack.at(0).toTensor();
}

// Steps would become slower without a word.
TEST(OutOverloads, ThisLibtorchHasThemAll) {
  for (const std::string& type : types_with_out_overload()) EXPECT_TRUE(bind_out_call(type, call_of(type))) << type;
}

TEST(OutOverloads, OtherOperatorsAndArgumentsAreNotTaken) {
  EXPECT_FALSE(bind_out_call("aten::tanh", call_of("aten::mm")));
  EXPECT_FALSE(bind_out_call("aten::cat", call_of("aten::mm")));
  AtenCall number_from_graph = call_of("aten::mul.Scalar");
  number_from_graph.arguments[1] = {Source::kScalar, {}, 1, 1};
  EXPECT_FALSE(bind_out_call("aten::mul.Scalar", number_from_graph));
}

// Also where the number is of another kind than the tensor, and over an input.
TEST(OutOverloads, ElementwiseOnesComputeTheSameBytesOverTheirInput) {
  int checked = 0;
  for (const std::string& type : types_with_out_overload()) {
    if (!is_elementwise(type)) continue;
    for (const c10::IValue& number : {c10::IValue(0.3), c10::IValue(2)}) {
      AtenCall call = call_of(type);
      const std::string name = call.op.schema().name();
      if (call.arguments.size() > 1 && call.arguments[1].source == Source::kConstant)
        call.arguments[1].constant = number;
      const std::vector<at::Tensor> inputs{at::rand({1003}) + 0.5, at::rand({1003}) + 0.5};
      const at::Tensor expected = result(call.op, call.arguments, inputs);
      const OutCall out = *bind_out_call(type, call);
      const at::Tensor over = inputs[0].clone();
      EXPECT_TRUE(result(out.op, out.arguments, {over, inputs[1]}, over).is_same(over)) << type;
      EXPECT_TRUE(at::equal(over, expected)) << type;
      ++checked;
    }
  }
  EXPECT_GE(checked, 20);
  EXPECT_FALSE(is_elementwise("aten::mm"));
  EXPECT_FALSE(is_elementwise("aten::cat"));
}

}  // namespace
}  // namespace longhaul
