#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"

namespace longhaul {

// The contents of a checkpoint, for inspection by people and programs. The argument is the prefix of a checkpoint, or a
// directory, which stands for the latest checkpoint there.
//
//   for (const CheckpointVariable& v : list_variables("runs/demo")) fmt::print("{} {}\n", v.name, v.shape.to_string());
//   const Tensor w = load_variable("runs/demo/model.ckpt-100", "w");
//
// A tensor stored in slices is returned whole. Names, shapes and dtypes are read from the index, so a missing data file
// is noticed only when its bytes are requested (DataLossError, which names the file). Any thread may call.
class CheckpointReader {
 public:
  // NotFoundError: no such checkpoint ("Unsuccessful TensorSliceReader constructor"), or none in the directory. Other
  // errors as in BundleReader.
  explicit CheckpointReader(const std::string& prefix_or_directory, FileSystem& files = FileSystem::real());

  bool has_tensor(const std::string& name) const { return reader_.has(name); }
  Tensor get_tensor(const std::string& name) const;  // NotFoundError: "NAME not found in checkpoint"
  std::map<std::string, Shape> get_variable_to_shape_map() const;
  std::map<std::string, int> get_variable_to_dtype_map() const;  // TensorFlow's numbers, even for dtypes unknown here
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

// The variables of a checkpoint, sorted by name.
std::vector<CheckpointVariable> list_variables(const std::string& prefix_or_directory,
                                               FileSystem& files = FileSystem::real());
Tensor load_variable(const std::string& prefix_or_directory, const std::string& name,
                     FileSystem& files = FileSystem::real());
inline CheckpointReader load_checkpoint(const std::string& prefix_or_directory,
                                        FileSystem& files = FileSystem::real()) {
  return CheckpointReader(prefix_or_directory, files);
}

// Returns the prefix itself, or that of the latest checkpoint in a directory. If all checkpoints there lack data files,
// returns that of one of them. NotFoundError: the directory has no checkpoint.
std::string checkpoint_prefix(FileSystem& files, const std::string& prefix_or_directory);

// "DT_FLOAT"; for an unknown number, "DT_77".
std::string checkpoint_dtype_name(int dtype);

// Functions of checkpoint_files.h and checkpoint_state.h under TensorFlow's names, for the real file system.
bool checkpoint_exists(const std::string& prefix);
std::vector<double> get_checkpoint_mtimes(const std::vector<std::string>& prefixes);
void remove_checkpoint(const std::string& prefix);
// nullopt: there is no state file, or it is unusable, which logs a warning.
std::optional<CheckpointState> get_checkpoint_state(const std::string& directory,
                                                    const std::string& latest_filename = kDefaultStateFile);

}  // namespace longhaul
