#include "longhaul/runtime/aten/out_overloads.h"

#include <ATen/ScalarOps.h>

#include <map>
#include <utility>

namespace longhaul {
namespace {

enum Traits : uint32_t {
  kElementwise = 1,  // is_elementwise()
  kSwapped = 2,      // the out overload takes the first two arguments in the other order
};

struct Entry {
  const char* name;
  const char* overload;
  std::vector<c10::IValue> constants;  // after the functional overload's arguments, before the buffers
  uint32_t traits = 0;
};

// Operators whose out overload writes straight into the buffer; of many others it computes a new tensor and copies it,
// as libtorch 1.13's for mul.Scalar: that computes mul.Tensor of a tensor that counts as a number.
const std::map<std::string, Entry>& table() {
  static const auto* table = new std::map<std::string, Entry>{
      {"aten::add.Tensor", {"aten::add", "out", {}, kElementwise}},
      {"aten::sub.Tensor", {"aten::sub", "out", {}, kElementwise}},
      {"aten::mul.Tensor", {"aten::mul", "out", {}, kElementwise}},
      {"aten::div.Tensor", {"aten::div", "out", {}, kElementwise}},
      {"aten::add.Scalar", {"aten::add", "out", {}, kElementwise}},
      {"aten::sub.Scalar", {"aten::sub", "out", {}, kElementwise}},
      {"aten::rsub.Scalar", {"aten::sub", "out", {}, kElementwise | kSwapped}},
      {"aten::mul.Scalar", {"aten::mul", "out", {}, kElementwise}},
      {"aten::div.Scalar", {"aten::div", "out", {}, kElementwise}},
      {"aten::maximum", {"aten::maximum", "out", {}, kElementwise}},
      {"aten::minimum", {"aten::minimum", "out", {}, kElementwise}},
      {"aten::mm", {"aten::mm", "out", {}}},
      {"aten::bmm", {"aten::bmm", "out", {}}},
      {"aten::addmm", {"aten::addmm", "out", {}}},
      {"aten::relu", {"aten::clamp_min", "out", {0}, kElementwise}},
      {"aten::threshold_backward", {"aten::threshold_backward", "grad_input", {}}},
      {"aten::tanh", {"aten::tanh", "out", {}}},
      {"aten::tanh_backward", {"aten::tanh_backward", "grad_input", {}}},
      {"aten::sigmoid", {"aten::sigmoid", "out", {}}},
      {"aten::sigmoid_backward", {"aten::sigmoid_backward", "grad_input", {}}},
      {"aten::gelu", {"aten::gelu", "out", {}}},
      {"aten::exp", {"aten::exp", "out", {}}},
      {"aten::log", {"aten::log", "out", {}}},
      {"aten::sqrt", {"aten::sqrt", "out", {}, kElementwise}},
      {"aten::pow.Tensor_Scalar", {"aten::pow", "Tensor_Scalar_out", {}, kElementwise}},
      {"aten::neg", {"aten::neg", "out", {}, kElementwise}},
      {"aten::abs", {"aten::abs", "out", {}, kElementwise}},
      {"aten::sum.dim_IntList", {"aten::sum", "IntList_out", {}}},
      {"aten::mean.dim", {"aten::mean", "out", {}}},
      {"aten::_softmax", {"aten::_softmax", "out", {}}},
      {"aten::_log_softmax", {"aten::_log_softmax", "out", {}}},
      {"aten::_softmax_backward_data", {"aten::_softmax_backward_data", "out", {}}},
      {"aten::_log_softmax_backward_data", {"aten::_log_softmax_backward_data", "out", {}}},
      {"aten::nll_loss_forward", {"aten::nll_loss_forward", "output", {}}},
      {"aten::nll_loss_backward", {"aten::nll_loss_backward", "grad_input", {}}},
      {"aten::max_pool2d_with_indices", {"aten::max_pool2d_with_indices", "out", {}}},
      {"aten::max_pool2d_with_indices_backward", {"aten::max_pool2d_with_indices_backward", "grad_input", {}}},
  };
  return *table;
}

const Entry* find_entry(const std::string& type) {
  const auto it = table().find(type);
  return it == table().end() ? nullptr : &it->second;
}

bool is_tensor(const c10::Argument& argument) {
  return argument.type()->kind() == c10::TypeKind::TensorType;
}

// The argument as the out overload takes it; false: it cannot.
bool convert(AtenArgument& argument, const c10::Argument& wanted) {
  if (!is_tensor(wanted) || argument.source == AtenArgument::Source::kTensor) return true;
  if (argument.source != AtenArgument::Source::kConstant || !argument.constant.isScalar()) return false;
  at::Tensor number = at::scalar_to_tensor(argument.constant.toScalar());
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  argument.constant = std::move(number);
  return true;
}

}  // namespace

bool has_out_overload(const std::string& type) {
  return find_entry(type) != nullptr;
}

bool is_elementwise(const std::string& type) {
  const Entry* entry = find_entry(type);
  return entry != nullptr && (entry->traits & kElementwise) != 0;
}

std::optional<OutCall> bind_out_call(const std::string& type, const AtenCall& functional) {
  const Entry* entry = find_entry(type);
  if (entry == nullptr) return std::nullopt;
  const auto op = c10::Dispatcher::singleton().findSchema({entry->name, entry->overload});
  OutCall call{functional.op, functional.arguments};
  for (const c10::IValue& constant : entry->constants) {
    call.arguments.push_back({AtenArgument::Source::kConstant, constant, 0, 0});
  }
  const size_t buffers = functional.op.schema().returns().size();
  if (!op || op->schema().arguments().size() != call.arguments.size() + buffers) return std::nullopt;
  if ((entry->traits & kSwapped) != 0) std::swap(call.arguments[0], call.arguments[1]);
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (!convert(call.arguments[i], op->schema().arguments()[i])) return std::nullopt;
  }
  call.op = *op;
  return call;
}

std::vector<std::string> types_with_out_overload() {
  std::vector<std::string> types;
  for (const auto& [type, entry] : table()) types.push_back(type);
  return types;
}

}  // namespace longhaul
