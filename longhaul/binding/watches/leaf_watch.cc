#include "longhaul/binding/watches/leaf_watch.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <bit>
#include <unordered_set>

namespace longhaul {
namespace {

// The tensors that a backward from `loss` gives gradients to.
std::vector<at::Tensor> leaves_of(const at::Tensor& loss) {
  std::vector<at::Tensor> leaves;
  std::unordered_set<const torch::autograd::Node*> seen;
  std::vector<torch::autograd::Node*> open{loss.grad_fn().get()};
  while (!open.empty()) {
    torch::autograd::Node* node = open.back();
    open.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    if (auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(node)) leaves.push_back(leaf->variable);
    for (const torch::autograd::Edge& edge : node->next_edges()) open.push_back(edge.function.get());
  }
  return leaves;
}

}  // namespace

std::optional<std::vector<int64_t>> LeafWatch::changed_one(const std::vector<Leaf>& leaves) const {
  for (const Leaf& leaf : leaves) {
    const auto before = std::find_if(leaves_.begin(), leaves_.end(), [&](auto& l) { return l.tensor == leaf.tensor; });
    if (before == leaves_.end() || leaf.look.gradient == nullptr) continue;
    const at::Tensor tensor(leaf.tensor.lock());
    if (before->look.same_value(leaf.look) && !(before->place && before->place->has_changed(tensor))) continue;
    return tensor.sizes().vec();
  }
  return std::nullopt;
}

std::optional<std::vector<int64_t>> LeafWatch::look_at(const at::Tensor& loss) {
  if (!std::has_single_bit(static_cast<uint64_t>(++steps_))) return std::nullopt;
  if (!loss.defined() || !loss.grad_fn()) return std::nullopt;
  std::vector<at::Tensor> unbound = leaves_of(loss);
  std::erase_if(unbound, [this](const at::Tensor& tensor) { return is_bound_(tensor.unsafeGetTensorImpl()); });
  const std::vector<TensorLook> looks = looks_at_all(unbound);
  std::vector<Leaf> leaves;
  for (size_t i = 0; i < unbound.size(); ++i) {
    leaves.push_back({c10::weak_intrusive_ptr<c10::TensorImpl>(unbound[i].getIntrusivePtr()), looks[i],
                      GradientPlace::of(unbound[i].grad(), unbound[i])});
  }
  const std::optional<std::vector<int64_t>> changed = changed_one(leaves);
  leaves_ = std::move(leaves);
  return changed;
}

}  // namespace longhaul
