#include "longhaul/train/saving/saved_bundle.h"

#include "longhaul/checkpoint/bundle/same_contents.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/ops/random_state.h"

namespace longhaul {
namespace {

std::vector<ExpectedTensor> expected_tensors(const SaverNodes& nodes, const std::vector<Tensor>& values) {
  std::vector<ExpectedTensor> tensors;
  for (size_t i = 0; i < values.size(); ++i) {
    tensors.push_back({nodes.tensors[i].name, nodes.tensors[i].slice, values[i]});
  }
  return tensors;
}

}  // namespace

uint64_t write_saved_bundle(FileSystem& files, const std::string& prefix, const SaverNodes& nodes,
                            std::vector<Tensor> values, const std::optional<ExtraFile>& extra_file,
                            BundleWriterOptions options) {
  options.num_shards = nodes.num_shards;
  for (size_t i = 0; i < values.size(); ++i) options.add_expected(nodes.tensors[i].shard, values[i]);
  BundleWriter writer(files, prefix, options);
  for (size_t i = 0; i < values.size(); ++i) {
    const SaverNodes::SavedTensor& tensor = nodes.tensors[i];
    writer.use_shard(tensor.shard);
    if (tensor.slice.empty()) {
      writer.add(tensor.name, values[i]);
    } else {
      const auto [full_shape, slice] = parse_shape_and_slice(tensor.slice);
      writer.add_slice(tensor.name, full_shape, slice, values[i]);
    }
    values[i] = Tensor();  // while it is held, the next step must copy instead of updating in place
  }
  if (extra_file) writer.add_file(extra_file->path, extra_file->contents());
  writer.finish();
  return writer.data_bytes();
}

bool has_saved_values(FileSystem& files, const std::string& prefix, const SaverNodes& nodes,
                      const std::vector<Tensor>& values) {
  if (values.empty() || !files.exists(index_path(prefix))) return false;
  return has_exactly(files, prefix, expected_tensors(nodes, values));
}

bool has_all_but_random_states(FileSystem& files, const std::string& prefix, const SaverNodes& nodes,
                               const std::vector<Tensor>& values) {
  return has_but_for(files, prefix, expected_tensors(nodes, values),
                     [](const std::string& name) { return name.starts_with(ops::kRandomStatePrefix); });
}

uint64_t data_bytes_on_disk(FileSystem& files, const std::string& prefix) {
  uint64_t bytes = 0;
  for (const std::string& path : data_files_of(files, prefix)) bytes += files.open(path)->size();
  return bytes;
}

}  // namespace longhaul
