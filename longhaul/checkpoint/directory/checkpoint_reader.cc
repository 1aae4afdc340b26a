#include "longhaul/checkpoint/directory/checkpoint_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/excerpt.h"
#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"
#include "longhaul/checkpoint/files/v1_checkpoint.h"
#include "longhaul/proto/types.pb.h"

namespace longhaul {
namespace {

std::string existing_prefix(const std::string& prefix_or_directory, FileSystem& files) {
  const std::string prefix = checkpoint_prefix(files, strip_file_scheme(prefix_or_directory));
  if (committed_prefix(files, prefix)) return prefix;
  throw_no_checkpoint(
      files, prefix,
      fmt::format(
          "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {} (no such checkpoint)",
          prefix));
}

}  // namespace

std::string checkpoint_prefix(FileSystem& files, const std::string& prefix_or_directory) {
  if (!files.is_directory(prefix_or_directory)) return prefix_or_directory;
  const auto latest = latest_checkpoint(files, prefix_or_directory);
  if (latest && !lies_in(*latest, prefix_or_directory)) {
    log_warning("{} is taken, which is not in {}: the file {} there names it", excerpt(*latest),
                excerpt(prefix_or_directory), kDefaultStateFile);
  }
  if (latest) return *latest;
  const auto incomplete = incomplete_checkpoints(files, prefix_or_directory, "");
  const auto step = [](const std::string& prefix) { return split_step(base_name(prefix)).step; };
  const auto newest = std::max_element(incomplete.begin(), incomplete.end(),
                                       [&](const auto& a, const auto& b) { return step(a) < step(b); });
  if (newest != incomplete.end()) return *newest;
  throw NotFoundError(
      fmt::format("Couldn't find 'checkpoint' file or checkpoints in given directory {}", prefix_or_directory));
}

std::string checkpoint_dtype_name(int dtype) {
  const std::string name = proto::DataType_IsValid(dtype) ? proto::DataType_Name(dtype) : "";
  return name.empty() ? fmt::format("DT_{}", dtype) : name;
}

CheckpointReader::CheckpointReader(const std::string& prefix_or_directory, FileSystem& files)
    : reader_(files, existing_prefix(prefix_or_directory, files)) {}

Tensor CheckpointReader::get_tensor(const std::string& name) const {
  if (!has_tensor(name)) throw NotFoundError(fmt::format("{} not found in checkpoint {}", name, prefix()));
  return reader_.read(name);
}

std::map<std::string, Shape> CheckpointReader::get_variable_to_shape_map() const {
  std::map<std::string, Shape> shapes;
  for (const std::string& name : reader_.keys()) shapes[name] = reader_.entry(name).shape;
  return shapes;
}

std::map<std::string, int> CheckpointReader::get_variable_to_dtype_map() const {
  std::map<std::string, int> dtypes;
  for (const std::string& name : reader_.keys()) dtypes[name] = reader_.entry(name).dtype;
  return dtypes;
}

std::string CheckpointReader::debug_string() const {
  std::string text;
  for (const std::string& name : reader_.keys()) {
    const BundleReader::Entry& entry = reader_.entry(name);
    text += fmt::format("{} ({}) {}\n", name, checkpoint_dtype_name(entry.dtype), entry.shape.to_string());
  }
  return text;
}

std::vector<CheckpointVariable> list_variables(const std::string& prefix_or_directory, FileSystem& files) {
  const CheckpointReader reader(prefix_or_directory, files);
  std::vector<CheckpointVariable> variables;
  for (const std::string& name : reader.bundle().keys()) {
    const BundleReader::Entry& entry = reader.bundle().entry(name);
    variables.push_back({name, entry.dtype, entry.shape});
  }
  return variables;
}

Tensor load_variable(const std::string& prefix_or_directory, const std::string& name, FileSystem& files) {
  return CheckpointReader(prefix_or_directory, files).get_tensor(name);
}

bool checkpoint_exists(const std::string& prefix) {
  return checkpoint_exists(FileSystem::real(), prefix);
}

std::vector<double> get_checkpoint_mtimes(const std::vector<std::string>& prefixes) {
  return checkpoint_mtimes(FileSystem::real(), prefixes);
}

void remove_checkpoint(const std::string& prefix) {
  remove_checkpoint(FileSystem::real(), prefix);
}

std::optional<CheckpointState> get_checkpoint_state(const std::string& directory, const std::string& latest_filename) {
  ReadCheckpointState read = read_checkpoint_state(FileSystem::real(), directory, latest_filename);
  if (!read.why.empty()) log_warning("{}: Checkpoint ignored", read.why);
  if (read.status != ReadCheckpointState::Status::kRead) return std::nullopt;
  return std::move(read.state);
}

}  // namespace longhaul
