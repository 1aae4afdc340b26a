#pragma once

#include <span>
#include <string>
#include <vector>

#include "longhaul/checkpoint/safetensors/safetensors_copy.h"
#include "longhaul/checkpoint/state_dict/state_dict.h"
#include "longhaul/checkpoint/torch_archive/torch_archive.h"
#include "longhaul/checkpoint/torch_archive/torch_archive_writer.h"

// Shared by the functions of state_dict.h.
namespace longhaul {

// The form in which `path` is written; never kByEnding.
StateDictFormat format_of(const std::string& path, const StateDictOptions& options);
// Of kTorch or kTorchModule.
TorchArchiveKind archive_kind(StateDictFormat format);
// The folder in an archive: PyTorch has the file's name without its ending.
std::string archive_root(const std::string& path);

SafetensorsOptions safetensors_options(const StateDictOptions& options);
StateDictReport to_report(const SafetensorsReport& report);

// An entry of an archive that is copied.
struct ChosenEntry {
  const TorchEntry* entry;
  std::string to;
};

// Those that the options choose, in the archive's order; `path` begins the messages. NotFoundError: no such `dict`.
std::vector<ChosenEntry> choose_entries(const TorchArchive& archive, const std::string& path,
                                        const StateDictOptions& options, SafetensorsChoice& choice);

// Their values.
std::vector<Tensor> read_entries(const TorchArchive& archive, std::span<const ChosenEntry> chosen);

// Whether it is an archive of PyTorch; else it is a safetensors file. DataLossError: it begins like neither.
bool is_torch_archive(FileSystem& files, const std::string& path);

}  // namespace longhaul
