#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/directory/checkpoint_reader.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/safetensors/safetensors.h"
#include "longhaul/checkpoint/safetensors/safetensors_copy.h"
#include "longhaul/checkpoint/safetensors/safetensors_json.h"
#include "longhaul/io/lock/directory_lock.h"

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

uint64_t bytes_of(const BundleReader& checkpoint, const std::string& name, const BundleEntry& entry) {
  const int64_t elements = entry.shape.num_elements();
  uint64_t bytes = 0;
  const bool fits = elements >= 0 && !__builtin_mul_overflow(static_cast<uint64_t>(elements),
                                                             dtype_size(static_cast<DType>(entry.dtype)), &bytes);
  if (fits && bytes == entry.bytes) return bytes;
  throw DataLossError(fmt::format("{}: tensor {}: {}{} cannot have {} bytes", checkpoint.prefix(), name,
                                  checkpoint_dtype_name(entry.dtype), entry.shape.to_string(), entry.bytes));
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
    tensors.push_back({name, *to, dtype, entry.shape, 0, bytes_of(checkpoint, name, entry)});
  }
  std::sort(tensors.begin(), tensors.end(), [](const SafetensorsCopy& a, const SafetensorsCopy& b) {
    return std::make_tuple(-safetensors_layout_rank(a.dtype), std::cref(a.to)) <
           std::make_tuple(-safetensors_layout_rank(b.dtype), std::cref(b.to));
  });
  return tensors;
}

// Gives the tensors their places.
void lay_out(std::vector<SafetensorsCopy>& tensors, const std::string& source) {
  uint64_t end = 0;
  for (SafetensorsCopy& tensor : tensors) {
    tensor.begin = end;
    if (__builtin_add_overflow(end, tensor.end, &end)) throw DataLossError(source + ": too many bytes for a file");
    tensor.end = end;
  }
}

SafetensorsHeader header_of(const std::vector<SafetensorsCopy>& tensors, const Metadata& metadata) {
  SafetensorsHeader header{.metadata = metadata};
  for (const SafetensorsCopy& one : tensors) {
    header.tensors.push_back({one.to, safetensors_dtype_name(one.dtype), one.shape, one.begin, one.end});
  }
  return header;
}

// The tensors' bytes, one after the other. The file keeps them until they are written.
void append_tensors(const BundleReader& checkpoint, std::span<const SafetensorsCopy> tensors, WritableFile& file) {
  for_each_batch(tensors, [&](std::span<const SafetensorsCopy> batch) {
    std::vector<BundleReader::Wanted> wanted;
    for (const SafetensorsCopy& one : batch) wanted.push_back({.name = one.from});
    for (const Tensor& tensor : checkpoint.read_many(wanted)) {
      file.append_borrowed({static_cast<const char*>(tensor.data()), tensor.size_bytes()}, tensor.owner());
    }
  });
}

void remove_temporary(FileSystem& files, const std::string& temporary) {
  try {
    remove_if_exists(files, temporary);
  } catch (const Error& error) {
    log_warning("a safetensors file was not written, and its temporary file could not be removed: {}", error.what());
  }
}

// 1. The bytes go to a temporary file. 2. They are synced: no rename before they are durable. 3. It gets its name: this
// is the commit. 4. The directory is synced, and the name is durable.
void write_file(FileSystem& files, const std::string& path, uint64_t size,
                const std::function<void(WritableFile&)>& write) {
  check_directory_owner(files, path);
  files.make_directories(directory_name(path));
  const std::string temporary = temporary_path(path);
  try {
    const auto file = files.create_large(temporary, {.if_exists = FileSystem::IfExists::kFail, .expected_bytes = size});
    write(*file);
    file->sync();
    file->close();
    check_directory_owner(files, path);
    files.rename(temporary, path);
  } catch (...) {
    remove_temporary(files, temporary);
    throw;
  }
  files.sync_directory(directory_name(path));
}

}  // namespace

SafetensorsReport export_safetensors(const std::string& prefix_or_directory, const std::string& path,
                                     const SafetensorsOptions& options, FileSystem& files) {
  const CheckpointReader reader(prefix_or_directory, files);
  const BundleReader& checkpoint = reader.bundle();
  const std::string target = strip_file_scheme(path);
  SafetensorsChoice choice(options, checkpoint.prefix());
  std::vector<SafetensorsCopy> tensors = choose(checkpoint, choice);
  lay_out(tensors, checkpoint.prefix());
  SafetensorsReport report = choice.report(metadata_of(checkpoint));
  report.bytes = tensors.empty() ? 0 : tensors.back().end;
  const std::string header = format_safetensors_header(header_of(tensors, report.metadata), target);
  write_file(files, target, header.size() + report.bytes, [&](WritableFile& file) {
    file.append(header);
    append_tensors(checkpoint, tensors, file);
  });
  return report;
}

}  // namespace longhaul
