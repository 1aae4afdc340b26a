#include "longhaul/train/saved_state/restore_check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "longhaul/base/first_names.h"
#include "longhaul/base/log.h"
#include "longhaul/ops/external_variable.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/train/saved_state/parameter_groups.h"

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

// What does not fit.
struct Mismatch {
  std::vector<std::string> missing;    // names that the checkpoint lacks
  std::vector<std::string> different;  // a sentence for each tensor of another dtype or shape
  std::vector<std::string> unused;     // names that the graph lacks
  std::set<std::string> shared;        // names that both have
  size_t missing_untrained = 0;        // of the missing ones, those that the program keeps, and does not train
  size_t wanted = 0;
};

bool is_trained(const SaverNodes::SavedTensor& tensor) {
  const Operation variable = variable_of(tensor.read);
  const std::vector<VariableInfo> trained = ops::trainable_variables(variable.graph());
  return std::ranges::any_of(trained, [&](const VariableInfo& info) { return info.ref.op() == variable; });
}

Mismatch compare(const BundleReader& reader, const std::vector<SaverNodes::SavedTensor>& tensors) {
  Mismatch found{.wanted = tensors.size()};
  for (const auto& tensor : tensors) {
    const BundleReader::Entry* entry = reader.find(tensor.name);
    if (entry == nullptr) {
      found.missing.push_back(tensor.name);
      found.missing_untrained += ops::is_external(variable_of(tensor.read)) && !is_trained(tensor) ? 1 : 0;
      continue;
    }
    found.shared.insert(tensor.name);
    if (std::string text = difference(tensor, *entry); !text.empty()) found.different.push_back(std::move(text));
  }
  for (const std::string& key : reader.keys()) {
    if (!found.shared.contains(key)) found.unused.push_back(key);
  }
  return found;
}

// "Adam" of "Adam_1"
std::string without_number(std::string_view name) {
  const size_t end = name.find_last_not_of("0123456789");
  return std::string(end != std::string_view::npos && end > 0 && name[end] == '_' ? name.substr(0, end) : name);
}

// Which optimizer or average a tensor is state of, by its name: "w/Adam" next to a "w" that both have, "beta1_power",
// and those of libtorch's, "SGD/w/momentum_buffer" and "longhaul/optimizer/SGD". Empty: of none.
std::string keeper_of(const std::string& name, const std::set<std::string>& shared) {
  static const std::set<std::string, std::less<>> kOfTorch{"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "LBFGS"};
  const size_t first = name.find('/'), last = name.rfind('/');
  const std::string base = without_number(name.substr(last == std::string::npos ? 0 : last + 1));
  if (base == "beta1_power" || base == "beta2_power") return "Adam";
  if (first == std::string::npos) return "";
  if (name.ends_with("longhaul/optimizer/" + name.substr(last + 1))) return base;
  if (const std::string kind = without_number(name.substr(0, first)); kOfTorch.contains(kind)) return kind;
  return shared.contains(name.substr(0, last)) ? base : "";
}

// Whose state the names are; nullopt: not all of them are such state.
std::optional<std::set<std::string>> keepers_of(const std::vector<std::string>& names,
                                                const std::set<std::string>& shared) {
  std::set<std::string> keepers;
  for (const std::string& name : names) {
    const std::string keeper = keeper_of(name, shared);
    if (keeper.empty()) return std::nullopt;
    keepers.insert(keeper);
  }
  return keepers;
}

// Whether all that is missing are values such as counters, which a program has begun to save.
bool lacks_values_of_the_program(const Mismatch& found) {
  const auto is_an_optimizers = [&](const std::string& name) { return !keeper_of(name, found.shared).empty(); };
  return found.different.empty() && !found.shared.empty() && found.missing_untrained == found.missing.size() &&
         std::ranges::none_of(found.missing, is_an_optimizers);
}

// What the mismatch comes from, as far as the names tell.
std::string verdict(const Mismatch& found) {
  if (found.missing.empty()) return "The names are the same, but sizes or dtypes differ.";
  if (found.shared.empty()) {
    return fmt::format("The models differ: the checkpoint has none of the graph's {} names.", found.wanted);
  }
  const auto wanted = keepers_of(found.missing, found.shared), stored = keepers_of(found.unused, found.shared);
  if (wanted && stored && found.different.empty()) {
    return fmt::format(
        "The model is the same, but its optimizer (or its averaging) differs: the graph has {}, the checkpoint has {}.",
        fmt::join(*wanted, ", "), stored->empty() ? "none" : fmt::format("{}", fmt::join(*stored, ", ")));
  }
  if (lacks_values_of_the_program(found)) {
    return fmt::format("The checkpoint lacks {} of the values that the program keeps itself (ops::external_variable).",
                       found.missing.size());
  }
  return fmt::format("The models differ, or their names do: the checkpoint has {} of the graph's {} names.",
                     found.shared.size(), found.wanted);
}

// "train/", where the checkpoint has all that is missing under names that begin so; empty: there is no such prefix.
std::string common_prefix_of_stored(const Mismatch& found) {
  if (found.missing.empty()) return "";
  const std::set<std::string> stored(found.unused.begin(), found.unused.end());
  const std::string& first = found.missing.front();
  for (const std::string& name : found.unused) {
    if (!name.ends_with("/" + first)) continue;
    const std::string prefix = name.substr(0, name.size() - first.size());
    const auto is_stored = [&](const std::string& missing) { return stored.contains(prefix + missing); };
    if (std::all_of(found.missing.begin(), found.missing.end(), is_stored)) return prefix;
  }
  return "";
}

constexpr const char* kAddedValues =
    "\nIf the program saves these values only since a later version, add them with ops::optional_program_value in "
    "place of ops::external_variable: then checkpoints may lack them.";

// A line for each, so many at most.
std::string lines(const std::vector<std::string>& items) {
  constexpr size_t kMostLines = 20;
  std::string text;
  for (size_t i = 0; i < std::min(items.size(), kMostLines); ++i) text += "\n  " + items[i];
  return items.size() <= kMostLines ? text : text + fmt::format("\n  and {} more", items.size() - kMostLines);
}

std::vector<std::string> sentences(const Mismatch& found) {
  std::vector<std::string> all;
  for (const std::string& name : found.missing) all.push_back(fmt::format("Key {} not found in checkpoint", name));
  all.insert(all.end(), found.different.begin(), found.different.end());
  return all;
}

}  // namespace

void check_restorable(const BundleReader& reader, const std::vector<SaverNodes::SavedTensor>& tensors) {
  check_parameter_groups(reader, tensors);
  const Mismatch found = compare(reader, tensors);
  if (found.missing.empty() && found.different.empty()) return;
  std::string message = fmt::format(
      "{} cannot be restored: there is a mismatch between the current graph and the graph that was saved. {}{}",
      reader.prefix(), verdict(found), lines(sentences(found)));
  if (!found.missing.empty() && !found.unused.empty()) message += "\nOnly the checkpoint has:" + lines(found.unused);
  if (const std::string prefix = common_prefix_of_stored(found); !prefix.empty()) {
    message += fmt::format("\nAll missing names would match with the prefix {}: is a variable_scope(\"{}\") missing?",
                           prefix, prefix.substr(0, prefix.size() - 1));
  }
  if (lacks_values_of_the_program(found)) message += kAddedValues;
  message +=
      "\nRestore it into the graph it was saved from, restore only the variables that both have "
      "(SaverOptions::var_list), or start in another directory.";
  if (!found.missing.empty()) throw NotFoundError(message);
  throw InvalidArgumentError(message);
}

void warn_of_left_out(const BundleReader& reader, const std::vector<SaverNodes::SavedTensor>& tensors) {
  std::set<std::string, std::less<>> restored;
  for (const auto& tensor : tensors) restored.insert(tensor.name);
  std::vector<std::string> left_out = reader.keys();
  std::erase_if(left_out,
                [&](const std::string& key) { return restored.contains(key) || key.starts_with("longhaul/"); });
  if (left_out.empty()) return;
  log_warning(
      "{} also has values that this program neither restores nor saves, so its next checkpoints lack them: {}. To keep "
      "one that has only been renamed or forgotten, stop the program, and save the value under this name again",
      reader.prefix(), first_names(left_out));
}

}  // namespace longhaul
