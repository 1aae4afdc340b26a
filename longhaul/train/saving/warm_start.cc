#include "longhaul/train/saving/warm_start.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unordered_set>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/directory/checkpoint_reader.h"
#include "longhaul/train/saved_state/save_entry.h"

namespace longhaul {
namespace {

struct Assignment {
  std::string tensor;  // in the checkpoint
  VariableInfo variable;
};

// The name that it has, or that the variable has of which it is a part.
const std::string& full_name(const VariableInfo& variable) {
  return variable.slice ? variable.slice->full_name : variable.name();
}

bool is_scope(const std::string& name) {
  return name.ends_with('/');
}

// Everything that is wrong, to be said at once.
struct Mismatches {
  std::vector<std::string> missing, different;

  void check(const std::string& prefix) const {
    if (missing.empty() && different.empty()) return;
    std::vector<std::string> all = missing;
    all.insert(all.end(), different.begin(), different.end());
    const std::string message =
        fmt::format("variables cannot be initialized from {}: {}", prefix, fmt::join(all, "; "));
    if (!missing.empty()) throw NotFoundError(message);
    throw InvalidArgumentError(message);
  }
};

class AssignmentResolver {
 public:
  AssignmentResolver(const Graph& graph, const BundleReader& reader, Mismatches& mismatches)
      : variables_(ops::global_variables(graph)), reader_(reader), mismatches_(mismatches) {}

  std::vector<Assignment> resolve(const AssignmentMap& assignments) {
    for (const auto& [tensor, target] : assignments) {
      if (const auto* name = std::get_if<std::string>(&target)) {
        is_scope(*name) || is_scope(tensor) ? add_scope(tensor, *name) : add_named(tensor, *name);
      } else if (const auto* variable = std::get_if<Variable>(&target)) {
        add(tensor, variable->info());
      } else {
        for (const Variable& part : std::get<PartitionedVariable>(target).parts()) add(tensor, part.info());
      }
    }
    return std::move(found_);
  }

 private:
  void add_scope(const std::string& tensors, const std::string& scope) {
    if (!is_scope(tensors) || !is_scope(scope)) {
      throw InvalidArgumentError(fmt::format(
          "Assignment map with scope only name {} should map to scope only {}. Should be 'scope/': 'other_scope/'.",
          is_scope(tensors) ? tensors : scope, is_scope(tensors) ? scope : tensors));
    }
    const std::string start = tensors == "/" ? "" : tensors;
    const size_t before = found_.size();
    for (const VariableInfo& variable : variables_) {
      const std::string& name = full_name(variable);
      const bool is_below = scope == "/" || name.starts_with(scope);
      if (is_below) add(start + name.substr(scope == "/" ? 0 : scope.size()), variable);
    }
    if (found_.size() == before) mismatches_.missing.push_back(fmt::format("the graph has no variables in {}", scope));
  }

  void add_named(const std::string& tensor, const std::string& name) {
    const size_t before = found_.size();
    for (const VariableInfo& variable : variables_) {
      if (variable.name() == name || full_name(variable) == name) add(tensor, variable);
    }
    if (found_.size() == before) mismatches_.missing.push_back(fmt::format("the graph has no variable {}", name));
  }

  void add(const std::string& tensor, const VariableInfo& variable) {
    found_.push_back({tensor, variable});
    const BundleReader::Entry* entry = reader_.find(tensor);
    if (entry == nullptr) {
      mismatches_.missing.push_back(
          fmt::format("Tensor {} ({} in the graph) is not found in the checkpoint", tensor, variable.name()));
      return;
    }
    const Shape shape = variable.slice ? Shape(variable.slice->full_shape) : variable.ref.shape();
    if (!shape.compatible_with(entry->shape)) {
      mismatches_.different.push_back(
          fmt::format("Shape of variable {} ({}) doesn't match with shape of tensor {} ({})", variable.name(),
                      shape.to_string(), tensor, entry->shape.to_string()));
    } else if (entry->dtype != variable.ref.dtype()) {
      mismatches_.different.push_back(fmt::format("dtype of variable {} ({}) doesn't match with that of tensor {} ({})",
                                                  variable.name(), dtype_name(variable.ref.dtype()), tensor,
                                                  checkpoint_dtype_name(entry->dtype)));
    }
  }

  const std::vector<VariableInfo> variables_;
  const BundleReader& reader_;
  Mismatches& mismatches_;
  std::vector<Assignment> found_;
};

void check_unused(const Graph& graph, const std::vector<Assignment>& assignments) {
  std::unordered_set<Operation, OperationHash> initializers;
  for (const Assignment& assignment : assignments) initializers.insert(assignment.variable.initializer);
  for (const Operation& op : graph.operations()) {
    for (const Operation& before : op.control_inputs()) {
      if (!initializers.contains(before)) continue;
      throw FailedPreconditionError(fmt::format(
          "{} already runs {}: call init_from_checkpoint before the init op is made (a Supervisor makes one)",
          op.name(), before.name()));
    }
  }
}

void initialize_from(const std::string& prefix, const Assignment& assignment) {
  VariableInfo variable = assignment.variable;
  const Scope scope = Scope(variable.ref.graph()).within(variable.name()).sub("checkpoint_initializer");
  const auto texts = [&](const std::string& text, const char* name) {
    return ops::constant(scope, Tensor::of<std::string>({text}), name);
  };
  const Operation restore =
      scope.add("RestoreV2", "RestoreV2",
                {ops::constant(scope, Tensor::scalar(prefix), "prefix"), texts(assignment.tensor, "tensor_names"),
                 texts(variable.slice ? slice_text(*variable.slice) : "", "shape_and_slices")},
                {{"dtypes", std::vector<DType>{variable.ref.dtype()}}});
  const Scope there = scope.with_device(variable.ref.op().device());
  variable.initial_value = restore.output();
  variable.initializer = there.add("Assign", "Assign", {variable.ref, restore.output()}, {{"validate_shape", true}});
  scope.graph().replace_variable(variable);
  log_info("Initialize variable {} from checkpoint {} with {}", variable.name(), prefix, assignment.tensor);
}

}  // namespace

void init_from_checkpoint(Graph& graph, const std::string& prefix_or_directory, const AssignmentMap& assignments,
                          FileSystem& files) {
  const CheckpointReader reader(prefix_or_directory, files);
  Mismatches mismatches;
  const auto found = AssignmentResolver(graph, reader.bundle(), mismatches).resolve(assignments);
  mismatches.check(reader.prefix());
  check_unused(graph, found);
  for (const Assignment& assignment : found) initialize_from(reader.prefix(), assignment);
}

}  // namespace longhaul
