#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/ops/state_ops.h"

namespace longhaul {

// A large variable that is stored as several, each a slice along one axis. May be copied. Checkpoints contain it under
// its own name, so it can be restored into any number of partitions, or into one variable.
class PartitionedVariable {
 public:
  PartitionedVariable() = default;
  // The parts in order. InvalidArgumentError: there are none, one is not a slice, or they are slices of different
  // variables.
  explicit PartitionedVariable(std::vector<Variable> parts);

  const std::string& name() const { return slice(0).full_name; }
  DType dtype() const { return parts_.front().dtype(); }
  Shape shape() const { return Shape(slice(0).full_shape); }
  const std::vector<Variable>& parts() const { return parts_; }
  size_t size() const { return parts_.size(); }
  const Variable& operator[](size_t i) const { return parts_[i]; }

 private:
  const SaveSliceInfo& slice(size_t i) const { return *parts_[i].info().slice; }
  std::vector<Variable> parts_;
};

// How a variable is partitioned: along `axis`, into `parts` pieces of sizes as equal as possible, the larger ones
// first.
struct Partitioning {
  int parts = 1;
  int axis = 0;
};

namespace ops {

// The initial value of a partition: a tensor of the part's shape.
using PartInitializer = std::function<Output(const Scope& scope, const SaveSliceInfo& part)>;

// Creates the variables <name>/part_0, <name>/part_1, ... InvalidArgumentError: there is no such axis, or it is shorter
// than the number of parts; the shape is not fully defined. AlreadyExistsError: the name is taken.
PartitionedVariable partitioned_variable(const Scope& scope, std::string_view name, const Shape& shape,
                                         const Partitioning& partitioning, const PartInitializer& initial_value,
                                         const VariableOptions& options = {});
// `initial_value` is that of the complete variable.
PartitionedVariable partitioned_variable(const Scope& scope, std::string_view name, const Tensor& initial_value,
                                         const Partitioning& partitioning, const VariableOptions& options = {});

}  // namespace ops
}  // namespace longhaul
