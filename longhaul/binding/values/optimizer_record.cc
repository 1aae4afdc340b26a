#include "longhaul/binding/values/optimizer_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <sstream>
#include <unordered_set>

#include "longhaul/base/error.h"
#include "longhaul/binding/values/torch_values.h"

namespace longhaul {
namespace {

constexpr std::string_view kGroup = "group", kIndent = "  ";

std::pair<std::string, double> option_of(std::string_view word) {
  const size_t equals = std::min(word.find('='), word.size());
  double number = 0;
  if (equals < word.size()) std::from_chars(word.data() + equals + 1, word.data() + word.size(), number);
  return {std::string(word.substr(0, equals)), number};
}

// Of `some`, one that is not in `others`; "": all are.
std::string first_missing(const std::vector<std::string>& some, const std::vector<std::string>& others) {
  const std::unordered_set<std::string> known(others.begin(), others.end());
  const auto missing = std::find_if(some.begin(), some.end(), [&](const auto& name) { return !known.contains(name); });
  return missing == some.end() ? "" : *missing;
}

}  // namespace

OptimizerRecord::OptimizerRecord(torch::optim::Optimizer& optimizer, const torch::nn::Module& module)
    : groups_(optimizer.param_groups().size()) {
  for (const TorchValue& value : optimizer_values(optimizer, module)) {
    for (size_t i = 0; i < groups_.size(); ++i) {
      const std::string prefix = fmt::format("group_{}/", i);
      if (value.name.starts_with(prefix))
        groups_[i].options.emplace_back(value.name.substr(prefix.size()), value.read().item<double>());
    }
  }
  for (size_t i = 0; i < groups_.size(); ++i) {
    for (const at::Tensor& parameter : optimizer.param_groups()[i].params())
      groups_[i].parameters.push_back(parameter_name(parameter, module));
  }
}

OptimizerRecord::OptimizerRecord(const at::Tensor& text) {
  std::istringstream lines(std::string(static_cast<const char*>(text.data_ptr()), text.nbytes()));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kGroup)) {
      groups_.emplace_back();
      std::istringstream words(line.substr(kGroup.size()));
      for (std::string word; words >> word;) groups_.back().options.push_back(option_of(word));
    } else if (!groups_.empty() && line.starts_with(kIndent)) {
      groups_.back().parameters.push_back(line.substr(kIndent.size()));
    }
  }
}

at::Tensor OptimizerRecord::to_text() const {
  std::string text;
  for (const Group& group : groups_) {
    text += kGroup;
    for (const auto& [name, number] : group.options) text += fmt::format(" {}={}", name, number);
    text += '\n';
    for (const std::string& parameter : group.parameters) text += fmt::format("{}{}\n", kIndent, parameter);
  }
  const at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  std::memcpy(bytes.data_ptr(), text.data(), text.size());
  return bytes;
}

void OptimizerRecord::check_groups(const std::string& optimizer, const OptimizerRecord& stored) const {
  if (groups_.size() != stored.groups_.size()) {
    throw InvalidArgumentError(fmt::format("the optimizer {} has {} parameter groups here and {} in the checkpoint",
                                           optimizer, groups_.size(), stored.groups_.size()));
  }
  for (size_t i = 0; i < groups_.size(); ++i) {
    const std::vector<std::string>&here = groups_[i].parameters, &there = stored.groups_[i].parameters;
    const std::string other = first_missing(there, here);
    if (other.empty() && here.size() == there.size()) continue;
    throw InvalidArgumentError(
        fmt::format("the optimizer {} cannot be restored: its group {} has {} parameters here and {} in the "
                    "checkpoint, and {} is in only one of the two",
                    optimizer, i, here.size(), there.size(), other.empty() ? first_missing(here, there) : other));
  }
}

std::string OptimizerRecord::changes_since(const OptimizerRecord& stored) const {
  std::vector<std::string> changes;
  for (size_t i = 0; i < std::min(groups_.size(), stored.groups_.size()); ++i) {
    for (const auto& [name, before] : stored.groups_[i].options) {
      const auto now = std::find_if(groups_[i].options.begin(), groups_[i].options.end(),
                                    [&, &wanted = name](const auto& option) { return option.first == wanted; });
      if (now == groups_[i].options.end() || now->second == before) continue;
      changes.push_back(
          fmt::format("{} of group {} is {} in this program and {} in the checkpoint", name, i, now->second, before));
    }
  }
  return fmt::format("{}", fmt::join(changes, "; "));
}

}  // namespace longhaul
