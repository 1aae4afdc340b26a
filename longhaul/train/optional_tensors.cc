#include "longhaul/train/optional_tensors.h"

#include <fmt/ranges.h>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

void warn_of(std::vector<std::string> missing, const BundleReader& reader) {
  constexpr size_t kMostNames = 5;
  const size_t count = missing.size();
  missing.resize(std::min(count, kMostNames));
  log_warning(
      "{} has no random numbers of {} operation{} of the graph ({}{}): they start from their seeds, so the training "
      "does not go on to the bit as it would have",
      reader.prefix(), count, count == 1 ? "" : "s", fmt::join(missing, ", "), count > kMostNames ? ", ..." : "");
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
