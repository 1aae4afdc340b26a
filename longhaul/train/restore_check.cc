#include "longhaul/train/restore_check.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "longhaul/train/parameter_groups.h"

namespace longhaul {
namespace {

std::string dtype_text(int number) {
  return is_known_dtype(number) ? dtype_name(static_cast<DType>(number)) : fmt::format("dtype {}", number);
}

bool fits(const SaverNodes::SavedTensor& tensor, const Shape& wanted, const Shape& stored) {
  if (tensor.any_shape) return wanted.num_elements() == stored.num_elements();
  return wanted.compatible_with(stored);
}

std::string difference(const SaverNodes::SavedTensor& tensor, const BundleReader::Entry& entry) {
  const DType dtype = tensor.read.dtype();
  const Shape shape = tensor.slice.empty() ? tensor.read.shape() : parse_shape_and_slice(tensor.slice).first;
  if (entry.dtype != dtype) {
    return fmt::format("{} is {} in the graph, its original dtype in the checkpoint is {}", tensor.name,
                       dtype_name(dtype), dtype_text(entry.dtype));
  }
  if (!fits(tensor, shape, entry.shape)) {
    return fmt::format("Assign requires shapes of both tensors to match. {} is {} in the graph, {} in the checkpoint",
                       tensor.name, shape.to_string(), entry.shape.to_string());
  }
  return "";
}

// What else the checkpoint has, by which a name that was changed is found; so many names at most.
std::string unused_text(const BundleReader& reader, const std::vector<SaverNodes::SavedTensor>& tensors) {
  constexpr size_t kMostNames = 20;
  std::vector<std::string> unused = reader.keys();
  for (const auto& tensor : tensors) std::erase(unused, tensor.name);
  if (unused.empty()) return "";
  const size_t more = unused.size() - std::min(unused.size(), kMostNames);
  unused.resize(unused.size() - more);
  return fmt::format(" The checkpoint has, and the graph has not: {}{}.", fmt::join(unused, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

void check_restorable(const BundleReader& reader, const std::vector<SaverNodes::SavedTensor>& tensors) {
  check_parameter_groups(reader, tensors);
  std::vector<std::string> missing, different;
  for (const auto& tensor : tensors) {
    const BundleReader::Entry* entry = reader.find(tensor.name);
    if (entry == nullptr) {
      missing.push_back(fmt::format("Key {} not found in checkpoint", tensor.name));
    } else if (std::string text = difference(tensor, *entry); !text.empty()) {
      different.push_back(std::move(text));
    }
  }
  if (missing.empty() && different.empty()) return;
  const bool is_missing = !missing.empty();
  missing.insert(missing.end(), different.begin(), different.end());
  const std::string message = fmt::format(
      "{} cannot be restored: there is a mismatch between the current graph and the graph that was saved. {}.{} "
      "Restore "
      "it into the graph it was saved from, restore only the variables that are common (SaverOptions::var_list), or "
      "start in another directory.",
      reader.prefix(), fmt::join(missing, "; "), is_missing ? unused_text(reader, tensors) : "");
  if (is_missing) throw NotFoundError(message);
  throw InvalidArgumentError(message);
}

}  // namespace longhaul
