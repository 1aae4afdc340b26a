#include "longhaul/graph/meta_graph/variable_def.h"

#include <fmt/format.h>

#include "longhaul/base/excerpt.h"

namespace longhaul {
namespace {

SaveSliceInfo slice_from_proto(const proto::SaveSliceInfoDef& def, const std::string& prefix) {
  return {.full_name = prefix + def.full_name(),
          .full_shape = {def.full_shape().begin(), def.full_shape().end()},
          .offset = {def.var_offset().begin(), def.var_offset().end()},
          .shape = {def.var_shape().begin(), def.var_shape().end()}};
}

std::optional<proto::SaveSliceInfoDef> slice_to_proto(const SaveSliceInfo& slice, const NameMap& names) {
  const auto full_name = names(slice.full_name);
  if (!full_name) return std::nullopt;
  proto::SaveSliceInfoDef def;
  def.set_full_name(*full_name);
  def.mutable_full_shape()->Assign(slice.full_shape.begin(), slice.full_shape.end());
  def.mutable_var_offset()->Assign(slice.offset.begin(), slice.offset.end());
  def.mutable_var_shape()->Assign(slice.shape.begin(), slice.shape.end());
  return def;
}

Output need_output(const Graph& graph, const proto::VariableDef& def, const std::string& name) {
  const Output found = graph.find_output(name);
  if (!found.valid()) {
    throw InvalidArgumentError(
        fmt::format("variable {}: the graph has no {}", excerpt(def.variable_name()), excerpt(name)));
  }
  return found;
}

Output initial_value_of(const Graph& graph, const proto::VariableDef& def, const std::string& prefix,
                        const Operation& initializer) {
  constexpr size_t kValue = 1;  // of Assign
  if (!def.initial_value_name().empty()) return need_output(graph, def, prefix + def.initial_value_name());
  return initializer.inputs().size() > kValue ? initializer.inputs()[kValue] : Output();
}

}  // namespace

std::optional<proto::VariableDef> variable_to_proto(const VariableInfo& variable, const NameMap& names) {
  const auto name = names(variable.ref.name()), read = names(variable.read.name()),
             initializer = names(variable.initializer.name());
  if (!name || !read || !initializer) return std::nullopt;
  proto::VariableDef def;
  def.set_variable_name(*name);
  def.set_initializer_name(*initializer);
  def.set_snapshot_name(*read);
  if (variable.initial_value.valid()) def.set_initial_value_name(names(variable.initial_value.name()).value_or(""));
  def.set_trainable(variable.trainable);
  if (!variable.slice) return def;
  const auto slice = slice_to_proto(*variable.slice, names);
  if (!slice) return std::nullopt;
  *def.mutable_save_slice_info_def() = *slice;
  return def;
}

VariableInfo variable_from_proto(const Graph& graph, const proto::VariableDef& def, const std::string& prefix) {
  if (def.is_resource()) {
    throw UnimplementedError(
        fmt::format("variable {}: resource variables are not supported", excerpt(def.variable_name())));
  }
  VariableInfo variable{.ref = need_output(graph, def, prefix + def.variable_name()),
                        .read = need_output(graph, def, prefix + def.snapshot_name()),
                        .initializer = graph.find_operation(prefix + def.initializer_name())};
  if (!variable.initializer) {
    throw InvalidArgumentError(fmt::format("variable {}: the graph has no {}", excerpt(def.variable_name()),
                                           excerpt(prefix + def.initializer_name())));
  }
  variable.initial_value = initial_value_of(graph, def, prefix, variable.initializer);
  variable.trainable = def.trainable();
  if (def.has_save_slice_info_def()) variable.slice = slice_from_proto(def.save_slice_info_def(), prefix);
  return variable;
}

}  // namespace longhaul
