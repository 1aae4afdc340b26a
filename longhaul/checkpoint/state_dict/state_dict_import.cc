#include "longhaul/base/error.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/state_dict/state_dict.h"
#include "longhaul/checkpoint/state_dict/state_dict_choice.h"

namespace longhaul {
namespace {

constexpr uint64_t kBatchBytes = uint64_t{64} << 20;

bool share_storage(const TorchEntry& a, const TorchEntry& b) {
  return a.place && b.place && a.place->storage == b.place->storage;
}

// The number of entries that are read together: up to a limit, and as long as they are in the same storage, which is
// read once for them.
size_t batch_size(std::span<const ChosenEntry> chosen) {
  size_t count = 1;
  uint64_t bytes = chosen[0].entry->bytes();
  for (; count < chosen.size(); ++count) {
    bytes += chosen[count].entry->bytes();
    if (bytes > kBatchBytes && !share_storage(*chosen[count - 1].entry, *chosen[count].entry)) break;
  }
  return count;
}

StateDictReport import_archive(const std::string& path, const std::string& prefix, const StateDictOptions& options,
                               FileSystem& files) {
  const TorchArchive archive(path, files);
  const SafetensorsOptions names = safetensors_options(options);
  SafetensorsChoice choice(names, path);
  const std::vector<ChosenEntry> chosen = choose_entries(archive, path, options, choice);
  StateDictReport report = to_report(choice.report({}));
  for (const ChosenEntry& one : chosen) report.bytes += one.entry->bytes();

  BundleWriter writer(files, prefix, {.expected_bytes = {report.bytes}});
  for (std::span<const ChosenEntry> rest(chosen); !rest.empty();) {
    const auto batch = rest.first(batch_size(rest));
    const std::vector<Tensor> tensors = read_entries(archive, batch);
    for (size_t i = 0; i < batch.size(); ++i) writer.add(batch[i].to, tensors[i]);
    rest = rest.subspan(batch.size());
  }
  writer.finish();
  return report;
}

void check_no_dict(const std::string& path, const StateDictOptions& options) {
  if (options.dict.empty()) return;
  throw NotFoundError(path + " has no dict " + options.dict + ": it is a safetensors file, which has no dicts");
}

StateDict load_archive(const std::string& path, const StateDictOptions& options, FileSystem& files) {
  const TorchArchive archive(path, files);
  const SafetensorsOptions names = safetensors_options(options);
  SafetensorsChoice choice(names, path);
  const std::vector<ChosenEntry> chosen = choose_entries(archive, path, options, choice);
  const std::vector<Tensor> tensors = read_entries(archive, chosen);
  StateDict dict;
  for (size_t i = 0; i < chosen.size(); ++i) dict.emplace_back(chosen[i].to, tensors[i]);
  return dict;
}

StateDict load_safetensors(const std::string& path, const StateDictOptions& options, FileSystem& files) {
  const SafetensorsSource source(files, path);
  const SafetensorsOptions names = safetensors_options(options);
  SafetensorsChoice choice(names, path);
  const std::vector<SafetensorsCopy> chosen = source.choose(choice);
  const std::vector<Tensor> tensors = source.read(chosen);
  StateDict dict;
  for (size_t i = 0; i < chosen.size(); ++i) dict.emplace_back(chosen[i].to, tensors[i]);
  return dict;
}

}  // namespace

StateDictReport import_state_dict(const std::string& path, const std::string& prefix, const StateDictOptions& options,
                                  FileSystem& files) {
  const std::string source = strip_file_scheme(path);
  if (is_torch_archive(files, source)) return import_archive(source, prefix, options, files);
  check_no_dict(source, options);
  return to_report(import_safetensors(source, prefix, safetensors_options(options), files));
}

StateDict load_state_dict(const std::string& path, const StateDictOptions& options, FileSystem& files) {
  const std::string source = strip_file_scheme(path);
  if (is_torch_archive(files, source)) return load_archive(source, options, files);
  check_no_dict(source, options);
  return load_safetensors(source, options, files);
}

}  // namespace longhaul
