#include "longhaul/checkpoint/safetensors/safetensors_copy.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace longhaul
