#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/safetensors/safetensors.h"
#include "longhaul/checkpoint/safetensors/safetensors_copy.h"

namespace longhaul {
namespace {

Tensor tensor_of(const std::map<std::string, std::string>& metadata) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : metadata) {
    texts.push_back(key);
    texts.push_back(value);
  }
  return Tensor::of<std::string>(Shape{static_cast<int64_t>(metadata.size()), 2}, texts);
}

}  // namespace

SafetensorsReport import_safetensors(const std::string& path, const std::string& prefix,
                                     const SafetensorsOptions& options, FileSystem& files) {
  const SafetensorsSource source(files, strip_file_scheme(path));
  SafetensorsChoice choice(options, path);
  const std::vector<SafetensorsCopy> tensors = source.choose(choice);
  SafetensorsReport report = choice.report(source.header().metadata);
  for (const SafetensorsCopy& one : tensors) report.bytes += one.bytes();

  BundleWriter writer(files, prefix, {.expected_bytes = {report.bytes}});
  for_each_batch(tensors, [&](std::span<const SafetensorsCopy> batch) {
    const std::vector<Tensor> read = source.read(batch);
    for (size_t i = 0; i < batch.size(); ++i) writer.add(batch[i].to, read[i]);
  });
  if (!report.metadata.empty()) writer.add(kSafetensorsMetadata, tensor_of(report.metadata));
  writer.finish();
  return report;
}

}  // namespace longhaul
