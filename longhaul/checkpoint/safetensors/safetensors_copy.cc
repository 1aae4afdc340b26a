#include "longhaul/checkpoint/safetensors/safetensors_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "longhaul/base/error.h"
#include "longhaul/checkpoint/directory/checkpoint_reader.h"
#include "longhaul/checkpoint/safetensors/safetensors_json.h"

namespace longhaul {
namespace {

constexpr uint64_t kBatchBytes = uint64_t{64} << 20;

}  // namespace

void SafetensorsChoice::refuse(const std::string& name, const std::string& new_name, const char* why) const {
  throw InvalidArgumentError(
      fmt::format("{}: tensor {} cannot be called {}: {}; `rename` can give it another name or "
                  "leave it out",
                  source_, quoted_name(name), quoted_name(new_name), why));
}

std::optional<std::string> SafetensorsChoice::name_for(const std::string& name, bool is_known,
                                                       const std::string& dtype) {
  const std::optional<std::string> chosen = options_.rename ? options_.rename(name) : name;
  if (!chosen) return std::nullopt;
  if (!is_known && options_.skip_unsupported) {
    skipped_.push_back(name);
    return std::nullopt;
  }
  if (!is_known) {
    throw UnimplementedError(
        fmt::format("{}: tensor {} has dtype {}, which is not supported in the other format; `rename` can leave it "
                    "out, `skip_unsupported` leaves out all such tensors",
                    source_, quoted_name(name), dtype));
  }
  if (chosen->empty() || chosen->front() == '\0') refuse(name, *chosen, "that is not a valid name");
  if (*chosen == kSafetensorsMetadata) refuse(name, *chosen, "that is the name of the metadata");
  if (!names_.insert(*chosen).second) refuse(name, *chosen, "another tensor has that name");
  return chosen;
}

SafetensorsReport SafetensorsChoice::report(const std::map<std::string, std::string>& metadata) const {
  SafetensorsReport report{.skipped = skipped_, .metadata = metadata};
  report.names.assign(names_.begin(), names_.end());
  std::sort(report.skipped.begin(), report.skipped.end());
  for (const auto& [key, value] : options_.metadata) report.metadata[key] = value;
  return report;
}

void for_each_batch(std::span<const SafetensorsCopy> tensors,
                    const std::function<void(std::span<const SafetensorsCopy>)>& copy) {
  while (!tensors.empty()) {
    size_t count = 0;
    uint64_t bytes = 0;
    do {
      bytes += tensors[count++].bytes();
    } while (count < tensors.size() && bytes + tensors[count].bytes() <= kBatchBytes);
    copy(tensors.first(count));
    tensors = tensors.subspan(count);
  }
}

uint64_t copied_bytes(const BundleReader& checkpoint, const std::string& name, const BundleEntry& entry) {
  const int64_t elements = entry.shape.num_elements();
  uint64_t bytes = 0;
  const bool fits = elements >= 0 && !__builtin_mul_overflow(static_cast<uint64_t>(elements),
                                                             dtype_size(static_cast<DType>(entry.dtype)), &bytes);
  if (fits && bytes == entry.bytes) return bytes;
  throw DataLossError(fmt::format("{}: tensor {}: {}{} cannot have {} bytes", checkpoint.prefix(), name,
                                  checkpoint_dtype_name(entry.dtype), entry.shape.to_string(), entry.bytes));
}

void read_copies(const BundleReader& checkpoint, std::span<const SafetensorsCopy> tensors,
                 const std::function<void(const Tensor&)>& use) {
  for_each_batch(tensors, [&](std::span<const SafetensorsCopy> batch) {
    std::vector<BundleReader::Wanted> wanted;
    for (const SafetensorsCopy& one : batch) wanted.push_back({.name = one.from});
    for (const Tensor& tensor : checkpoint.read_many(wanted)) use(tensor);
  });
}

void lay_out(std::vector<SafetensorsCopy>& tensors, const std::string& source) {
  std::sort(tensors.begin(), tensors.end(), [](const SafetensorsCopy& a, const SafetensorsCopy& b) {
    return std::make_tuple(-safetensors_layout_rank(a.dtype), std::cref(a.to)) <
           std::make_tuple(-safetensors_layout_rank(b.dtype), std::cref(b.to));
  });
  uint64_t end = 0;
  for (SafetensorsCopy& tensor : tensors) {
    tensor.begin = end;
    if (__builtin_add_overflow(end, tensor.end, &end)) throw DataLossError(source + ": too many bytes for a file");
    tensor.end = end;
  }
}

SafetensorsHeader header_of(const std::vector<SafetensorsCopy>& tensors,
                            const std::map<std::string, std::string>& metadata) {
  SafetensorsHeader header{.metadata = metadata};
  for (const SafetensorsCopy& one : tensors) {
    header.tensors.push_back({one.to, safetensors_dtype_name(one.dtype), one.shape, one.begin, one.end});
  }
  return header;
}

}  // namespace longhaul
