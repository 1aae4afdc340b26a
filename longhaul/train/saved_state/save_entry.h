#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/ops/partitioned_variable.h"
#include "longhaul/ops/saveable.h"

namespace longhaul {

// What a saver is to save (SaverOptions::var_list): a variable, the slices of a partitioned one, or anything else. In
// checkpoints a variable has its name in the graph, a slice that of the whole, unless another is given here.
class SaveEntry {
 public:
  SaveEntry(const Variable& variable) : SaveEntry(variable.info()) {}
  SaveEntry(const VariableInfo& variable);
  SaveEntry(const PartitionedVariable& variable);
  SaveEntry(Saveable saveable) : name_(saveable.name), saveable_(std::move(saveable)) {}

  SaveEntry(std::string name, const Variable& variable) : SaveEntry(std::move(name), variable.info()) {}
  SaveEntry(std::string name, const VariableInfo& variable);
  SaveEntry(std::string name, const PartitionedVariable& variable) : SaveEntry(std::move(name), variable.parts()) {}
  SaveEntry(std::string name, const std::vector<Variable>& slices);

  const std::string& name() const { return name_; }
  // One of those that have the name together: it stands in a list, by itself, and is a part of a larger variable.
  bool is_loose_slice() const { return loose_slice_; }
  const std::vector<VariableInfo>& variables() const { return variables_; }
  const std::optional<Saveable>& saveable() const { return saveable_; }
  Graph& graph() const;  // InvalidArgumentError: there is nothing in it

 private:
  std::string name_;
  bool loose_slice_ = false;
  std::vector<VariableInfo> variables_;
  std::optional<Saveable> saveable_;
};

// All global variables and all saveable objects of the graph.
std::vector<SaveEntry> everything_to_save(const Graph& graph);

// Of variables by their names in checkpoints, as ExponentialMovingAverage::variables_to_restore gives them; several of
// one name are slices of it.
std::vector<SaveEntry> save_entries(const std::map<std::string, std::vector<Variable>>& by_name);

// "10 3 0,4:0,3": the whole shape, then start and length in each dimension, as save operations have it.
std::string slice_text(const SaveSliceInfo& slice);

// Sorted by name. With `reshape`, variables take tensors of any shape that has as many elements. InvalidArgumentError:
// two entries of the "same name", something with "two names", a list that is not of slices of one variable.
std::vector<Saveable> saveables_of(const std::vector<SaveEntry>& entries, bool reshape);

}  // namespace longhaul
