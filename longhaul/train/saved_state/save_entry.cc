#include "longhaul/train/saved_state/save_entry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace longhaul {
namespace {

Output reshaped(const Scope& scope, const Output& value, const Shape& shape) {
  const Output dims = ops::constant(scope.within("Reshape"), Tensor::of(shape.dims()), "shape");
  return scope.add("Reshape", "Reshape", {value, dims}).output();
}

Saveable variable_saveable(const std::string& name, const VariableInfo& variable, bool reshape) {
  Saveable saveable{.name = name, .op = variable.ref.op()};
  saveable.parts = {{name, variable.read, variable.slice ? slice_text(*variable.slice) : ""}};
  const bool any_shape = reshape && !variable.slice;
  saveable.restore = [ref = variable.ref, any_shape](const Scope& scope, const std::vector<Output>& restored) {
    const Scope there = scope.with_device(ref.op().device());
    const Output value = any_shape ? reshaped(there, restored[0], ref.shape()) : restored[0];
    return there.add("Assign", "Assign", {ref, value}, {{"validate_shape", true}});
  };
  return saveable;
}

void check_names(const std::vector<SaveEntry>& entries) {
  std::map<std::string, bool> loose_by_name;
  for (const SaveEntry& entry : entries) {
    const auto [it, added] = loose_by_name.emplace(entry.name(), entry.is_loose_slice());
    if (added || (it->second && entry.is_loose_slice())) continue;
    if (it->second || entry.is_loose_slice()) {
      throw InvalidArgumentError("Mixing slices and non-slices with the same name: " + entry.name());
    }
    throw InvalidArgumentError("At least two variables have the same name: " + entry.name());
  }
}

void check_operations(const std::vector<Saveable>& saveables) {
  std::unordered_map<Operation, std::string, OperationHash> names;
  for (const Saveable& saveable : saveables) {
    if (!saveable.op) continue;
    const auto [it, added] = names.emplace(saveable.op, saveable.name);
    if (added) continue;
    throw InvalidArgumentError(fmt::format("The same saveable will be restored with two names: {} (as {} and {})",
                                           saveable.op.name(), it->second, saveable.name));
  }
}

}  // namespace

std::string slice_text(const SaveSliceInfo& slice) {
  std::vector<std::string> extents;
  for (size_t d = 0; d < slice.offset.size(); ++d)
    extents.push_back(fmt::format("{},{}", slice.offset[d], slice.shape[d]));
  return fmt::format("{} {}", fmt::join(slice.full_shape, " "), fmt::join(extents, ":"));
}

SaveEntry::SaveEntry(const VariableInfo& variable)
    : name_(variable.slice ? variable.slice->full_name : variable.name()),
      loose_slice_(variable.slice.has_value()),
      variables_{variable} {}

SaveEntry::SaveEntry(const PartitionedVariable& variable) : SaveEntry(variable.name(), variable.parts()) {}

SaveEntry::SaveEntry(std::string name, const VariableInfo& variable) : name_(std::move(name)), variables_{variable} {}

SaveEntry::SaveEntry(std::string name, const std::vector<Variable>& slices) : name_(std::move(name)) {
  const PartitionedVariable checked(slices);
  for (const Variable& slice : checked.parts()) variables_.push_back(slice.info());
}

Graph& SaveEntry::graph() const {
  if (!variables_.empty()) return variables_.front().ref.graph();
  if (saveable_ && !saveable_->parts.empty()) return saveable_->parts.front().value.graph();
  throw InvalidArgumentError(name_ + " has no tensors to save");
}

std::vector<SaveEntry> everything_to_save(const Graph& graph) {
  std::vector<SaveEntry> entries;
  for (const VariableInfo& variable : ops::global_variables(graph)) entries.emplace_back(variable);
  for (Saveable& saveable : ops::saveable_objects(graph)) entries.emplace_back(std::move(saveable));
  return entries;
}

std::vector<SaveEntry> save_entries(const std::map<std::string, std::vector<Variable>>& by_name) {
  std::vector<SaveEntry> entries;
  for (const auto& [name, variables] : by_name) {
    const bool whole = variables.size() == 1 && !variables[0].info().slice;
    entries.push_back(whole ? SaveEntry(name, variables[0]) : SaveEntry(name, variables));
  }
  return entries;
}

std::vector<Saveable> saveables_of(const std::vector<SaveEntry>& entries, bool reshape) {
  check_names(entries);
  std::vector<Saveable> saveables;
  for (const SaveEntry& entry : entries) {
    if (entry.saveable()) saveables.push_back(*entry.saveable());
    for (const VariableInfo& variable : entry.variables())
      saveables.push_back(variable_saveable(entry.name(), variable, reshape));
  }
  std::stable_sort(saveables.begin(), saveables.end(), [](auto& a, auto& b) { return a.name < b.name; });
  check_operations(saveables);
  return saveables;
}

}  // namespace longhaul
