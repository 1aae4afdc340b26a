#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"

namespace longhaul {

// What is in a checkpoint, for people and programs that look into it. A checkpoint is named by its prefix, or by its
// directory: then it is the latest one there.
//
//   for (const CheckpointVariable& v : list_variables("runs/demo")) fmt::print("{} {}\n", v.name, v.shape.to_string());
//   const Tensor w = load_variable("runs/demo/model.ckpt-100", "w");
//
// A tensor that is stored in slices is given whole. What there is stands in the index: a data file that is missing is
// found missing when its bytes are asked for (DataLossError, which names it). Any thread.
class CheckpointReader {
 public:
  // NotFoundError: no such checkpoint ("Unsuccessful TensorSliceReader constructor"), or none in the directory. Others:
  // BundleReader's.
  explicit CheckpointReader(const std::string& prefix_or_directory, FileSystem& files = FileSystem::real());

  bool has_tensor(const std::string& name) const { return reader_.has(name); }
  Tensor get_tensor(const std::string& name) const;  // NotFoundError: "NAME not found in checkpoint"
  std::map<std::string, Shape> get_variable_to_shape_map() const;
  std::map<std::string, int> get_variable_to_dtype_map() const;  // TensorFlow's numbers, also of dtypes unknown here
  std::string debug_string() const;                              // a line for each tensor: "w (DT_FLOAT) [784,10]"

  const std::string& prefix() const { return reader_.prefix(); }
  const BundleReader& bundle() const { return reader_; }

 private:
  const BundleReader reader_;
};

struct CheckpointVariable {
  std::string name;
  int dtype = kInvalid;  // TensorFlow's number
  Shape shape;
};

// Sorted by name.
std::vector<CheckpointVariable> list_variables(const std::string& prefix_or_directory,
                                               FileSystem& files = FileSystem::real());
Tensor load_variable(const std::string& prefix_or_directory, const std::string& name,
                     FileSystem& files = FileSystem::real());
inline CheckpointReader load_checkpoint(const std::string& prefix_or_directory,
                                        FileSystem& files = FileSystem::real()) {
  return CheckpointReader(prefix_or_directory, files);
}

// The prefix itself, or that of the latest checkpoint in a directory; where data files of all are missing, one of
// those. NotFoundError: there is none in it.
std::string checkpoint_prefix(FileSystem& files, const std::string& prefix_or_directory);

// "DT_FLOAT"; of an unknown number "DT_77".
std::string checkpoint_dtype_name(int dtype);

// The original's names for what checkpoint_files.h and checkpoint_state.h do with any file system.
bool checkpoint_exists(const std::string& prefix);
std::vector<double> get_checkpoint_mtimes(const std::vector<std::string>& prefixes);
void remove_checkpoint(const std::string& prefix);
// nullopt: there is no state file, or, with a warning, none that can be used.
std::optional<CheckpointState> get_checkpoint_state(const std::string& directory,
                                                    const std::string& latest_filename = kDefaultStateFile);

}  // namespace longhaul
