#include "longhaul/runtime/aten/out_overloads.h"

#include <map>

namespace longhaul {
namespace {

struct Entry {
  const char* name;
  const char* overload;
  std::vector<c10::IValue> constants;
};

// Operators whose out overload writes straight into the buffer; of many others it computes a new tensor and copies it.
const std::map<std::string, Entry>& table() {
  static const auto* table = new std::map<std::string, Entry>{
      {"aten::add.Tensor", {"aten::add", "out", {}}},
      {"aten::sub.Tensor", {"aten::sub", "out", {}}},
      {"aten::mul.Tensor", {"aten::mul", "out", {}}},
      {"aten::div.Tensor", {"aten::div", "out", {}}},
      {"aten::mm", {"aten::mm", "out", {}}},
      {"aten::bmm", {"aten::bmm", "out", {}}},
      {"aten::addmm", {"aten::addmm", "out", {}}},
      {"aten::relu", {"aten::clamp_min", "out", {0}}},
      {"aten::threshold_backward", {"aten::threshold_backward", "grad_input", {}}},
      {"aten::tanh", {"aten::tanh", "out", {}}},
      {"aten::tanh_backward", {"aten::tanh_backward", "grad_input", {}}},
      {"aten::sigmoid", {"aten::sigmoid", "out", {}}},
      {"aten::sigmoid_backward", {"aten::sigmoid_backward", "grad_input", {}}},
      {"aten::gelu", {"aten::gelu", "out", {}}},
      {"aten::exp", {"aten::exp", "out", {}}},
      {"aten::log", {"aten::log", "out", {}}},
      {"aten::sqrt", {"aten::sqrt", "out", {}}},
      {"aten::neg", {"aten::neg", "out", {}}},
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

}  // namespace

bool has_out_overload(const std::string& type) {
  return table().contains(type);
}

std::optional<OutOverload> find_out_overload(const std::string& type, const c10::FunctionSchema& functional) {
  const auto it = table().find(type);
  if (it == table().end()) return std::nullopt;
  const Entry& entry = it->second;
  const auto op = c10::Dispatcher::singleton().findSchema({entry.name, entry.overload});
  const size_t wanted = functional.arguments().size() + entry.constants.size() + functional.returns().size();
  if (!op || op->schema().arguments().size() != wanted) return std::nullopt;
  return OutOverload{*op, entry.constants};
}

std::vector<std::string> types_with_out_overload() {
  std::vector<std::string> types;
  for (const auto& [type, entry] : table()) types.push_back(type);
  return types;
}

}  // namespace longhaul
