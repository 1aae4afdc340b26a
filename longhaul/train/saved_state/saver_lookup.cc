#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "longhaul/train/saved_state/saver_graph.h"

namespace longhaul {
namespace {

constexpr size_t kFirstSavedInput = 3;  // SaveV2 takes the prefix, the names and the slices, and then the tensors

using NameAndSlice = std::pair<std::string, std::string>;

// The operations that have to be done before `op`, itself included; what is before those of the type `border` is left
// out. In order of creation.
std::vector<Operation> before(const Operation& op, const std::string& border) {
  std::vector<Operation> open{op};
  std::unordered_set<Operation, OperationHash> seen{op};
  for (size_t i = 0; i < open.size(); ++i) {
    const Operation next = open[i];
    if (next.type() == border) continue;
    const auto visit = [&](const Operation& earlier) {
      if (seen.insert(earlier).second) open.push_back(earlier);
    };
    for (const Output& input : next.inputs()) visit(input.op());
    for (const Operation& control : next.control_inputs()) visit(control);
  }
  std::sort(open.begin(), open.end(), [](auto& a, auto& b) { return a.id() < b.id(); });
  return open;
}

std::vector<std::string> strings_in(const Operation& op, size_t input) {
  const Operation constant = op.inputs()[input].op();
  const Tensor* value = constant.find_attr<Tensor>("value");
  if (constant.type() != "Const" || value == nullptr) {
    throw InvalidArgumentError(fmt::format("{}: names and slices must be constants", op.name()));
  }
  const auto strings = value->flat<std::string>();
  return {strings.begin(), strings.end()};
}

std::vector<NameAndSlice> names_of(const Operation& op, size_t count) {
  const std::vector<std::string> names = strings_in(op, 1), slices = strings_in(op, 2);
  if (names.size() != count || slices.size() != count) {
    throw InvalidArgumentError(
        fmt::format("{}: {} names and {} slices for {} tensors", op.name(), names.size(), slices.size(), count));
  }
  std::vector<NameAndSlice> result;
  for (size_t i = 0; i < count; ++i) result.emplace_back(names[i], slices[i]);
  return result;
}

void add_saved(const Operation& save, int shard, SaverNodes& nodes) {
  const auto names = names_of(save, save.inputs().size() - kFirstSavedInput);
  for (size_t i = 0; i < names.size(); ++i) {
    nodes.tensors.push_back({.name = names[i].first,
                             .slice = names[i].second,
                             .read = save.inputs()[kFirstSavedInput + i],
                             .shard = shard});
  }
}

void find_restored(SaverNodes& nodes) {
  std::map<NameAndSlice, Output> restored;
  std::unordered_set<Output, OutputHash> reshaped, optional;
  for (const Operation& op : before(nodes.restore, "RestoreV2")) {
    if (op.type() == "Reshape") reshaped.insert(op.inputs()[0]);
    if (op.type() != "RestoreV2") continue;
    const auto names = names_of(op, static_cast<size_t>(op.num_outputs()));
    for (size_t i = 0; i < names.size(); ++i) restored.emplace(names[i], op.output(static_cast<int>(i)));
    if (op.find_attr<bool>(kOptionalAttr) != nullptr) optional.insert(op.output());
  }
  for (SaverNodes::SavedTensor& tensor : nodes.tensors) {
    const auto found = restored.find({tensor.name, tensor.slice});
    if (found == restored.end()) {
      throw InvalidArgumentError(fmt::format("{} does not restore {}", nodes.restore.name(), tensor.name));
    }
    tensor.restored = found->second;
    tensor.any_shape = reshaped.contains(found->second);
    tensor.optional = optional.contains(found->second);
  }
}

}  // namespace

SaverNodes saver_nodes_at(const Output& filename, const Output& save, const Operation& restore, bool sharded) {
  SaverNodes nodes{.num_shards = 0, .sharded = sharded, .filename = filename, .save = save, .restore = restore};
  for (const Operation& op : before(save.op(), "SaveV2")) {
    if (op.type() == "SaveV2") add_saved(op, nodes.num_shards++, nodes);
  }
  if (nodes.num_shards == 0) {
    throw InvalidArgumentError(fmt::format("{} does not depend on a SaveV2 operation", save.name()));
  }
  find_restored(nodes);
  return nodes;
}

SaverNodes find_saver_nodes(const Graph& graph, const proto::SaverDef& saver_def) {
  if (saver_def.version() == proto::SaverDef::V1) {
    throw UnimplementedError("the saver writes V1 checkpoints: only version V2 is supported");
  }
  return saver_nodes_at(graph.output(saver_def.filename_tensor_name()), graph.output(saver_def.save_tensor_name()),
                        graph.operation(saver_def.restore_op_name()), saver_def.sharded());
}

}  // namespace longhaul
