#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "longhaul/base/error.h"
#include "longhaul/base/first_names.h"
#include "longhaul/checkpoint/directory/checkpoint_reader.h"
#include "longhaul/checkpoint/files/committed_file.h"
#include "longhaul/checkpoint/state_dict/state_dict.h"
#include "longhaul/checkpoint/state_dict/state_dict_choice.h"

namespace longhaul {
namespace {

constexpr char kGlobalStep[] = "global_step";

// An empty file would be noticed only where it is loaded.
void check_has_module(const BundleReader& checkpoint) {
  const std::vector<std::string> names = checkpoint.keys();
  if (std::any_of(names.begin(), names.end(), [](const std::string& name) { return module_tensor_name(name); })) return;
  throw NotFoundError(fmt::format(
      "{} has no tensors of a module: all their names have a '/'. Give a `rename`, which says how they are called "
      "there; the names are {}",
      checkpoint.prefix(), first_names(names)));
}

std::vector<SafetensorsCopy> choose(const BundleReader& checkpoint, TorchArchiveKind kind, SafetensorsChoice& choice) {
  std::vector<SafetensorsCopy> tensors;
  for (const std::string& name : checkpoint.keys()) {
    if (name == kSafetensorsMetadata) continue;  // of an imported file
    const BundleEntry& entry = checkpoint.entry(name);
    const auto dtype = is_known_dtype(entry.dtype) ? static_cast<DType>(entry.dtype) : kInvalid;
    const auto to = choice.name_for(name, torch_archive_has(kind, dtype), checkpoint_dtype_name(entry.dtype));
    if (to) tensors.push_back({name, *to, dtype, entry.shape, 0, copied_bytes(checkpoint, name, entry)});
  }
  return tensors;
}

std::vector<TorchTensor> to_torch(const std::vector<SafetensorsCopy>& copies) {
  std::vector<TorchTensor> tensors;
  for (const SafetensorsCopy& one : copies) tensors.push_back({one.to, one.dtype, one.shape});
  return tensors;
}

// Writes an archive; `add_all` adds the tensors.
void write_archive(FileSystem& files, const std::string& path, TorchArchiveKind kind,
                   const std::vector<TorchTensor>& tensors, const std::function<void(TorchArchiveWriter&)>& add_all) {
  write_committed_file(files, path, torch_archive_bytes(tensors), [&](WritableFile& file) {
    TorchArchiveWriter writer(file, archive_root(path), kind, tensors);
    add_all(writer);
    writer.finish();
  });
}

StateDictReport export_archive(const BundleReader& checkpoint, const std::string& path, TorchArchiveKind kind,
                               const StateDictOptions& options, FileSystem& files) {
  const SafetensorsOptions names = safetensors_options(options);
  SafetensorsChoice choice(names, checkpoint.prefix());
  const std::vector<SafetensorsCopy> copies = choose(checkpoint, kind, choice);
  StateDictReport report = to_report(choice.report({}));
  for (const SafetensorsCopy& one : copies) report.bytes += one.bytes();
  write_archive(files, path, kind, to_torch(copies), [&](TorchArchiveWriter& writer) {
    read_copies(checkpoint, copies, [&](const Tensor& tensor) { writer.add(tensor); });
  });
  return report;
}

// The tensors of a dict in memory that are written; `from` is their place in it, as text.
std::vector<SafetensorsCopy> choose(const StateDict& tensors, StateDictFormat format, SafetensorsChoice& choice,
                                    std::map<std::string, Tensor>& by_name) {
  std::vector<SafetensorsCopy> copies;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) throw InvalidArgumentError(fmt::format("the tensor {} is undefined", name));
    const bool is_known = format == StateDictFormat::kSafetensors
                              ? safetensors_dtype_name(tensor.dtype()) != nullptr
                              : torch_archive_has(archive_kind(format), tensor.dtype());
    const auto to = choice.name_for(name, is_known, dtype_name(tensor.dtype()));
    if (!to) continue;
    copies.push_back({name, *to, tensor.dtype(), tensor.shape(), 0, tensor.size_bytes()});
    by_name[*to] = tensor;
  }
  return copies;
}

}  // namespace

std::optional<std::string> module_tensor_name(const std::string& name) {
  if (name.find('/') != name.npos || name == kGlobalStep || name == kSafetensorsMetadata) return std::nullopt;
  return name;
}

StateDictReport export_state_dict(const std::string& prefix_or_directory, const std::string& path,
                                  const StateDictOptions& options, FileSystem& files) {
  const CheckpointReader reader(prefix_or_directory, files);
  StateDictOptions chosen = options;
  if (!chosen.rename) {
    check_has_module(reader.bundle());
    chosen.rename = module_tensor_name;
  }
  const std::string target = strip_file_scheme(path);
  const StateDictFormat format = format_of(target, options);
  if (format != StateDictFormat::kSafetensors) {
    return export_archive(reader.bundle(), target, archive_kind(format), chosen, files);
  }
  return to_report(export_safetensors(reader.prefix(), target, safetensors_options(chosen), files));
}

StateDictReport save_state_dict(const StateDict& tensors, const std::string& path, const StateDictOptions& options,
                                FileSystem& files) {
  const std::string target = strip_file_scheme(path);
  const StateDictFormat format = format_of(target, options);
  const SafetensorsOptions names = safetensors_options(options);
  SafetensorsChoice choice(names, target);
  std::map<std::string, Tensor> by_name;
  std::vector<SafetensorsCopy> copies = choose(tensors, format, choice, by_name);
  StateDictReport report = to_report(choice.report({}));
  for (const SafetensorsCopy& one : copies) report.bytes += one.bytes();
  if (format != StateDictFormat::kSafetensors) {
    write_archive(files, target, archive_kind(format), to_torch(copies), [&](TorchArchiveWriter& writer) {
      for (const SafetensorsCopy& one : copies) writer.add(by_name.at(one.to));
    });
    return report;
  }
  lay_out(copies, target);
  const std::string header = format_safetensors_header(header_of(copies, {{"format", "pt"}}), target);
  write_committed_file(files, target, header.size() + report.bytes, [&](WritableFile& file) {
    file.append(header);
    for (const SafetensorsCopy& one : copies) {
      const Tensor& tensor = by_name.at(one.to);
      file.append_borrowed({static_cast<const char*>(tensor.data()), tensor.size_bytes()}, tensor.owner());
    }
  });
  return report;
}

}  // namespace longhaul
