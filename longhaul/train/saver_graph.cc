#include "longhaul/train/saver_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace longhaul {
namespace {

constexpr size_t kFirstSavedInput = 3;  // SaveV2 takes the prefix, the names and the slices, and then the tensors

void check_names(const std::vector<SavedVariable>& variables) {
  std::map<std::string, std::string> names_by_variable;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (i > 0 && variables[i].name == variables[i - 1].name) {
      throw InvalidArgumentError("At least two variables have the same name: " + variables[i].name);
    }
    const auto [it, added] = names_by_variable.emplace(variables[i].variable.name(), variables[i].name);
    if (!added) {
      throw InvalidArgumentError(fmt::format("The same saveable will be restored with two names: {} (as {} and {})",
                                             variables[i].variable.name(), it->second, variables[i].name));
    }
  }
}

Output filename_input(const Scope& scope, const std::string& filename) {
  const Output value = ops::constant(scope.within("filename"), Tensor::scalar(filename), "input");
  const Output name = ops::placeholder_with_default(scope, value, {}, "filename");
  return ops::placeholder_with_default(scope, name, {}, "Const");
}

struct NameInputs {
  Output tensor_names, slices;
};

NameInputs name_inputs(const Scope& scope, const std::vector<SavedVariable>& variables) {
  std::vector<std::string> names;
  for (const SavedVariable& variable : variables) names.push_back(variable.name);
  return {ops::constant(scope, Tensor::of(names), "tensor_names"),
          ops::constant(scope, Tensor::of(std::vector<std::string>(names.size())), "shape_and_slices")};
}

Output add_save(const Scope& scope, const std::vector<SavedVariable>& variables, const Output& filename) {
  const NameInputs names = name_inputs(scope.within("SaveV2"), variables);
  std::vector<Output> inputs{filename, names.tensor_names, names.slices};
  std::vector<DType> dtypes;
  for (const SavedVariable& variable : variables) {
    inputs.push_back(variable.variable.read);
    dtypes.push_back(variable.variable.ref.dtype());
  }
  const Operation save = scope.add("SaveV2", "SaveV2", inputs, {{"dtypes", dtypes}});
  return ops::identity(scope.with_control_dependencies({save}), filename, "control_dependency");
}

Operation add_restore(const Scope& scope, const std::vector<SavedVariable>& variables, const Output& filename) {
  const NameInputs names = name_inputs(scope.within("RestoreV2"), variables);
  std::vector<DType> dtypes;
  for (const SavedVariable& variable : variables) dtypes.push_back(variable.variable.ref.dtype());
  const Operation restore =
      scope.add("RestoreV2", "RestoreV2", {filename, names.tensor_names, names.slices}, {{"dtypes", dtypes}});
  std::vector<Operation> assigns;
  for (size_t i = 0; i < variables.size(); ++i) {
    const Output value = restore.output(static_cast<int>(i));
    assigns.push_back(scope.add("Assign", "Assign", {variables[i].variable.ref, value}, {{"validate_shape", true}}));
  }
  return ops::group(scope, assigns, "restore_all");
}

}  // namespace

SaverNodes add_saver_nodes(const Scope& scope, std::vector<SavedVariable> variables, const std::string& filename) {
  std::sort(variables.begin(), variables.end(), [](auto& a, auto& b) { return a.name < b.name; });
  check_names(variables);
  SaverNodes nodes;
  for (const SavedVariable& variable : variables) nodes.tensors.push_back({variable.name, variable.variable.read});
  nodes.filename = filename_input(scope, filename);
  nodes.save = add_save(scope, variables, nodes.filename);
  nodes.restore = add_restore(scope, variables, nodes.filename);
  return nodes;
}

SaverNodes find_saver_nodes(const Graph& graph, const proto::SaverDef& saver_def) {
  SaverNodes nodes{.filename = graph.output(saver_def.filename_tensor_name()),
                   .save = graph.output(saver_def.save_tensor_name()),
                   .restore = graph.operation(saver_def.restore_op_name())};
  const std::vector<Operation>& before = nodes.save.op().control_inputs();
  const auto save = std::find_if(before.begin(), before.end(), [](auto& op) { return op.type() == "SaveV2"; });
  if (save == before.end()) {
    throw InvalidArgumentError(fmt::format("{} does not come after a SaveV2 operation", nodes.save.name()));
  }
  const auto names = save->inputs()[1].op().attr<Tensor>("value").flat<std::string>();
  for (size_t i = 0; i < names.size(); ++i) {
    nodes.tensors.push_back({names[i], save->inputs()[kFirstSavedInput + i]});
  }
  return nodes;
}

}  // namespace longhaul
