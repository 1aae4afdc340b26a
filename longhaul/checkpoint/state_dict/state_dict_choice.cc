#include "longhaul/checkpoint/state_dict/state_dict_choice.h"

#include <fmt/format.h>

#include <set>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/base/first_names.h"
#include "longhaul/checkpoint/torch_archive/pickle_writer.h"

namespace longhaul {
namespace {

// The dicts that a `dict` could have meant.
std::vector<std::string> dicts_in(const TorchArchive& archive) {
  std::set<std::string> dicts;
  for (const TorchEntry& entry : archive.entries()) {
    const size_t slash = entry.name.find('/');
    if (slash != entry.name.npos) dicts.insert(excerpt(entry.name.substr(0, slash)));
  }
  return {dicts.begin(), dicts.end()};
}

[[noreturn]] void throw_no_dict(const TorchArchive& archive, const std::string& path, const std::string& dict) {
  const std::vector<std::string> dicts = dicts_in(archive);
  throw NotFoundError(fmt::format("{} has no dict {} with values; it has {}", path, dict,
                                  dicts.empty() ? "no dicts in its dict" : first_names(dicts)));
}

}  // namespace

StateDictFormat format_of(const std::string& path, const StateDictOptions& options) {
  if (options.format != StateDictFormat::kByEnding) return options.format;
  return path.ends_with(".safetensors") ? StateDictFormat::kSafetensors : StateDictFormat::kTorch;
}

TorchArchiveKind archive_kind(StateDictFormat format) {
  return format == StateDictFormat::kTorchModule ? TorchArchiveKind::kModule : TorchArchiveKind::kDict;
}

std::string archive_root(const std::string& path) {
  const std::string name = base_name(path);
  const std::string root = name.substr(0, name.rfind('.'));
  return root.empty() || !is_utf8(root) ? "archive" : root;
}

SafetensorsOptions safetensors_options(const StateDictOptions& options) {
  return {.rename = options.rename, .skip_unsupported = options.skip_unsupported};
}

StateDictReport to_report(const SafetensorsReport& report) {
  return {.names = report.names, .skipped = report.skipped, .bytes = report.bytes};
}

std::vector<ChosenEntry> choose_entries(const TorchArchive& archive, const std::string& path,
                                        const StateDictOptions& options, SafetensorsChoice& choice) {
  const std::string start = options.dict.empty() ? "" : options.dict + "/";
  std::vector<ChosenEntry> chosen;
  bool found = start.empty();
  for (const TorchEntry& entry : archive.entries()) {
    if (!entry.name.starts_with(start)) continue;
    found = true;
    const auto to = choice.name_for(entry.name.substr(start.size()), entry.dtype != kInvalid, entry.dtype_name);
    if (to) chosen.push_back({&entry, *to});
  }
  if (!found) throw_no_dict(archive, path, options.dict);
  return chosen;
}

std::vector<Tensor> read_entries(const TorchArchive& archive, std::span<const ChosenEntry> chosen) {
  std::vector<const TorchEntry*> wanted;
  for (const ChosenEntry& one : chosen) wanted.push_back(one.entry);
  return archive.read(wanted);
}

bool is_torch_archive(FileSystem& files, const std::string& path) {
  const auto file = files.open(path);
  if (looks_like_torch_archive(*file)) return true;
  constexpr uint64_t kJsonBegin = 8;  // of a safetensors file, after its length
  char first = '\0';
  if (file->read(kJsonBegin, &first, 1) == 1 && first == '{') return false;
  throw DataLossError(
      fmt::format("{}: it begins neither like an archive of PyTorch nor like a safetensors file", path));
}

}  // namespace longhaul
