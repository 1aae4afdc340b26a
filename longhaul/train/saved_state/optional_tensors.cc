#include "longhaul/train/saved_state/optional_tensors.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "longhaul/base/log.h"
#include "longhaul/ops/random_state.h"

namespace longhaul {
namespace {

std::string list_of(std::vector<std::string> names) {
  constexpr size_t kMostNames = 5;
  const bool cut = names.size() > kMostNames;
  names.resize(std::min(names.size(), kMostNames));
  return fmt::format("{}{}", fmt::join(names, ", "), cut ? ", ..." : "");
}

void warn_of_random_numbers(const std::vector<std::string>& missing, const BundleReader& reader) {
  log_warning(
      "{} has no random state for {} operation{} of the graph ({}): they start from their seeds, so training will not "
      "continue bit for bit as it would have",
      reader.prefix(), missing.size(), missing.size() == 1 ? "" : "s", list_of(missing));
}

// What a library keeps for itself, below "longhaul/", can only be compared where it is there.
void warn_of(std::vector<std::string> missing, const BundleReader& reader) {
  const auto random = std::stable_partition(missing.begin(), missing.end(),
                                            [](auto& name) { return !name.starts_with(ops::kRandomStatePrefix); });
  if (random != missing.end()) warn_of_random_numbers({random, missing.end()}, reader);
  missing.erase(random, missing.end());
  std::erase_if(missing, [](const std::string& name) { return name.starts_with("longhaul/"); });
  if (missing.empty()) return;
  log_warning("{} lacks {}, which this program saves: training continues with the values that the program has set",
              reader.prefix(), list_of(missing));
}

}  // namespace

std::vector<SaverNodes::SavedTensor> tensors_to_read(const BundleReader& reader,
                                                     const std::vector<SaverNodes::SavedTensor>& tensors,
                                                     Feeds* feeds) {
  std::vector<SaverNodes::SavedTensor> present;
  std::vector<std::string> missing;
  for (const SaverNodes::SavedTensor& tensor : tensors) {
    if (!tensor.optional || reader.find(tensor.name) != nullptr) {
      present.push_back(tensor);
    } else {
      missing.push_back(tensor.name);
      feeds->emplace_back(tensor.restored, Tensor(tensor.read.dtype(), Shape{0}));
    }
  }
  if (!missing.empty()) warn_of(std::move(missing), reader);
  return present;
}

}  // namespace longhaul
