#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/ops/partitioned_variable.h"
#include "longhaul/ops/saveable.h"

namespace longhaul {

// An item for a saver to save (SaverOptions::var_list): a variable, the slices of a partitioned variable, or another
// saveable. Unless a name is given here, its name in checkpoints is the variable's name in the graph or, for a slice,
// that of the complete variable.
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
  // Whether it is one of several entries that share a name: a part of a larger variable, listed on its own.
  bool is_loose_slice() const { return loose_slice_; }
  const std::vector<VariableInfo>& variables() const { return variables_; }
  const std::optional<Saveable>& saveable() const { return saveable_; }
  Graph& graph() const;  // InvalidArgumentError: the entry is empty

 private:
  std::string name_;
  bool loose_slice_ = false;
  std::vector<VariableInfo> variables_;
  std::optional<Saveable> saveable_;
};

// All global variables and all saveable objects of the graph.
std::vector<SaveEntry> everything_to_save(const Graph& graph);

// Entries for variables by their names in checkpoints, as ExponentialMovingAverage::variables_to_restore returns them.
// Several variables of one name are its slices.
std::vector<SaveEntry> save_entries(const std::map<std::string, std::vector<Variable>>& by_name);

// "10 3 0,4:0,3": the full shape, then the start and the length in each dimension, as in save operations.
std::string slice_text(const SaveSliceInfo& slice);

// The saveables, sorted by name. With `reshape`, variables accept tensors of any shape with as many elements.
// InvalidArgumentError: two entries of the "same name", an item with "two names", a list that is not of slices of one
// variable.
std::vector<Saveable> saveables_of(const std::vector<SaveEntry>& entries, bool reshape);

}  // namespace longhaul
