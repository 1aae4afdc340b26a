#include "longhaul/runtime/plan/loss_shapes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "longhaul/graph/graph.h"
#include "longhaul/runtime/aten/aten_tensor.h"

namespace longhaul {
namespace {

// Of "gradients/a/b": where the name of what was differentiated begins; npos: nowhere.
size_t after_gradients(std::string_view name, size_t from) {
  while (from < name.size()) {
    const size_t slash = name.find('/', from);
    if (slash == std::string_view::npos) return slash;
    if (name.substr(from, slash - from).starts_with("gradients")) return slash + 1;
    from = slash + 1;
  }
  return std::string_view::npos;
}

std::string inputs_text(const Operation& op) {
  std::vector<std::string> inputs;
  for (const Output& input : op.inputs()) {
    inputs.push_back(fmt::format("{} {}{}", input.name(), dtype_name(input.dtype()), input.shape().to_string()));
  }
  return fmt::format("{}", fmt::join(inputs, ", "));
}

std::optional<Output> input_for(const Operation& op, const std::string& edge) {
  const auto* edges = op.find_attr<std::vector<std::string>>("edges");
  if (edges == nullptr) return std::nullopt;
  const auto found = std::find(edges->begin(), edges->end(), edge);
  if (found == edges->end()) return std::nullopt;
  return op.inputs()[static_cast<size_t>(found - edges->begin())];
}

}  // namespace

Operation forward_of(const Operation& op) {
  const std::string& name = op.name();
  const size_t end = name.rfind("_grad/");
  if (end == std::string::npos) return {};
  const std::string_view head = std::string_view(name).substr(0, end);
  for (size_t at = after_gradients(head, 0); at != std::string_view::npos; at = after_gradients(head, at)) {
    if (const Operation found = op.graph().find_operation(head.substr(at))) return found;
  }
  return {};
}

std::string operation_error_text(const Operation& op, const std::string& what) {
  const Operation forward = forward_of(op);
  if (!forward) return fmt::format("{} ({}): {}", op.name(), op.type(), what);
  return fmt::format("{} ({}) with the inputs {}: its gradient cannot be computed: {} ({}): {}", forward.name(),
                     forward.type(), inputs_text(forward), op.name(), op.type(), what);
}

std::optional<LossOfPair> loss_of_pair(const Operation& op) {
  static const std::set<std::string> kTypes{"aten::mse_loss", "aten::smooth_l1_loss", "aten::l1_loss",
                                            "aten::huber_loss", "aten::binary_cross_entropy_with_logits"};
  if (!kTypes.contains(op.type())) return std::nullopt;
  const auto prediction = input_for(op, "self"), target = input_for(op, "target");
  if (!prediction || !target || !prediction->shape().compatible_with(target->shape())) return std::nullopt;
  return LossOfPair{op, *prediction, *target};
}

void LossShapeCheck::run(Frame& frame, SessionState&) const {
  const at::Tensor& prediction = frame.slots[static_cast<size_t>(prediction_)].tensor;
  const at::Tensor& target = frame.slots[static_cast<size_t>(target_)].tensor;
  if (prediction.sizes() == target.sizes()) return;
  throw InvalidArgumentError(
      fmt::format("{} ({}): the prediction {} is {} and the target {} is {}, but they must have the same shape",
                  op().name(), op().type(), pair_.prediction.name(), shape_of(prediction).to_string(),
                  pair_.target.name(), shape_of(target).to_string()));
}

}  // namespace longhaul
