#include <fmt/format.h>

#include "longhaul/checkpoint/directory/checkpoint_reader.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/committed_file.h"
#include "longhaul/checkpoint/safetensors/safetensors.h"
#include "longhaul/checkpoint/safetensors/safetensors_copy.h"
#include "longhaul/checkpoint/safetensors/safetensors_json.h"

namespace longhaul {
namespace {

using Metadata = std::map<std::string, std::string>;

constexpr char kGlobalStep[] = "global_step";

// Whether the entry is what import_safetensors() makes of metadata.
bool is_stored_metadata(const std::string& name, const BundleEntry& entry) {
  return name == kSafetensorsMetadata && entry.dtype == kString && entry.shape.rank() == 2 && entry.shape.dim(1) == 2;
}

std::optional<int64_t> global_step(const BundleReader& checkpoint) {
  const BundleEntry* entry = checkpoint.find(kGlobalStep);
  const bool is_step = entry != nullptr && is_known_dtype(entry->dtype) &&
                       is_integer(static_cast<DType>(entry->dtype)) && entry->shape.num_elements() == 1;
  return is_step ? checkpoint.read(kGlobalStep).item<int64_t>() : split_step(checkpoint.prefix()).step;
}

Metadata metadata_of(const BundleReader& checkpoint) {
  Metadata metadata{{"format", "pt"}, {"source", base_name(checkpoint.prefix())}};
  if (const auto step = global_step(checkpoint)) metadata["global_step"] = std::to_string(*step);
  const BundleEntry* stored = checkpoint.find(kSafetensorsMetadata);
  if (stored == nullptr || !is_stored_metadata(kSafetensorsMetadata, *stored)) return metadata;
  const Tensor texts = checkpoint.read(kSafetensorsMetadata);
  const auto pairs = texts.flat<std::string>();
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) metadata[pairs[i]] = pairs[i + 1];
  return metadata;
}

// In the order in which they are laid out.
std::vector<SafetensorsCopy> choose(const BundleReader& checkpoint, SafetensorsChoice& choice) {
  std::vector<SafetensorsCopy> tensors;
  for (const std::string& name : checkpoint.keys()) {
    const BundleEntry& entry = checkpoint.entry(name);
    if (is_stored_metadata(name, entry)) continue;
    const bool is_known = safetensors_dtype_name(entry.dtype) != nullptr;
    const auto to = choice.name_for(name, is_known, checkpoint_dtype_name(entry.dtype));
    if (!to) continue;
    const auto dtype = static_cast<DType>(entry.dtype);
    tensors.push_back({name, *to, dtype, entry.shape, 0, copied_bytes(checkpoint, name, entry)});
  }
  lay_out(tensors, checkpoint.prefix());
  return tensors;
}

}  // namespace

SafetensorsReport export_safetensors(const std::string& prefix_or_directory, const std::string& path,
                                     const SafetensorsOptions& options, FileSystem& files) {
  const CheckpointReader reader(prefix_or_directory, files);
  const BundleReader& checkpoint = reader.bundle();
  const std::string target = strip_file_scheme(path);
  SafetensorsChoice choice(options, checkpoint.prefix());
  const std::vector<SafetensorsCopy> tensors = choose(checkpoint, choice);
  SafetensorsReport report = choice.report(metadata_of(checkpoint));
  report.bytes = tensors.empty() ? 0 : tensors.back().end;
  const std::string header = format_safetensors_header(header_of(tensors, report.metadata), target);
  write_committed_file(files, target, header.size() + report.bytes, [&](WritableFile& file) {
    file.append(header);
    read_copies(checkpoint, tensors, [&](const Tensor& tensor) {
      file.append_borrowed({static_cast<const char*>(tensor.data()), tensor.size_bytes()}, tensor.owner());
    });
  });
  return report;
}

}  // namespace longhaul
