#include "longhaul/train/saved_state/parameter_groups.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <set>

namespace longhaul {
namespace {

using Groups = std::map<std::string, std::set<uint64_t>, std::less<>>;  // of each optimizer, by its name

// "critic/SGD/group_1/lr" is of the optimizer "critic/SGD". Each group has a rate; a variable of the program's, as
// "net/group_1/conv", is of none.
void add_group(std::string_view name, Groups* groups) {
  constexpr std::string_view kGroup = "/group_", kRate = "/lr";
  const size_t at = name.rfind(kGroup);
  if (at == name.npos || !name.ends_with(kRate)) return;
  name.remove_suffix(kRate.size());
  const char* const digits = name.data() + at + kGroup.size();
  const char* const last = name.data() + name.size();
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits, last, number);
  if (error == std::errc() && end == last) (*groups)[std::string(name.substr(0, at))].insert(number);
}

}  // namespace

void check_parameter_groups(const BundleReader& reader, const std::vector<SaverNodes::SavedTensor>& tensors) {
  Groups wanted, stored;
  for (const SaverNodes::SavedTensor& tensor : tensors) add_group(tensor.name, &wanted);
  if (wanted.empty()) return;
  for (const std::string& key : reader.keys()) add_group(key, &stored);
  for (const auto& [optimizer, groups] : wanted) {
    const auto found = stored.find(optimizer);
    if (found == stored.end() || found->second.size() == groups.size()) continue;
    throw InvalidArgumentError(
        fmt::format("{} cannot be restored: the optimizer {} has {} parameter group{} here and {} in the checkpoint. "
                    "Give it the groups that it had when it was saved, or restore without it (SaverOptions::var_list)",
                    reader.prefix(), optimizer, groups.size(), groups.size() == 1 ? "" : "s", found->second.size()));
  }
}

}  // namespace longhaul
