#include "longhaul/placement/colocation_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

constexpr std::string_view kPlace = "loc:@";

size_t index_of(const Operation& op) {
  return static_cast<size_t>(op.id());
}

// What it reads or changes without being asked where: it goes where that is.
std::vector<Operation> followed_by(const Operation& op) {
  std::vector<Operation> followed;
  for (int i = 0; i < op.ref_inputs(); ++i) followed.push_back(op.inputs()[static_cast<size_t>(i)].op());
  if (op.type() == "Identity" && op.inputs()[0].op().type() == "VariableV2") followed.push_back(op.inputs()[0].op());
  return followed;
}

bool is_follower(const Operation& op) {
  return !followed_by(op).empty() || op.type() == "RandomState" || op.type() == "RestoreRandomState";
}

std::string shown(const DeviceSpec& spec) {
  return spec == DeviceSpec() ? "[]" : spec.to_string();
}

}  // namespace

bool may_be_divided(const Operation& op) {
  return op.type() == "ReportUninitializedVariables";
}

ColocationGroups::ColocationGroups(const Graph& graph, bool soft)
    : operations_(graph.operations()), soft_(soft), parents_(operations_.size()), groups_(operations_.size()) {
  std::iota(parents_.begin(), parents_.end(), size_t{0});
  for (const Operation& op : operations_) ask_for_own(op);
  for (const Operation& op : operations_) follow_classes(op);
  for (const Operation& op : operations_) follow_references(op);
  for (const Operation& op : operations_) add_wish_of_follower(op);
  for (const Operation& op : operations_) groups_[group_of(op)].members.push_back(op);
}

size_t ColocationGroups::group_of(const Operation& op) {
  size_t group = index_of(op);
  while (parents_[group] != group) {
    parents_[group] = parents_[parents_[group]];
    group = parents_[group];
  }
  return group;
}

const DeviceSpec& ColocationGroups::wanted(size_t group) const {
  if (!groups_[group].error.empty()) throw InvalidArgumentError(groups_[group].error);
  return groups_[group].wanted;
}

DeviceSpec ColocationGroups::combined(const DeviceSpec& a, const DeviceSpec& b) const {
  if (!soft_ || (a.type == b.type && a.index == b.index)) return a.combined_with(b);
  const bool contradict = (!a.type.empty() && !b.type.empty() && a.type != b.type) || (a.index && b.index);
  return contradict ? a.without_type().combined_with(b.without_type()) : a.combined_with(b);
}

template <typename Describe>
void ColocationGroups::unite(const Operation& a, const Operation& b, const Describe& described) {
  const size_t from = std::max(group_of(a), group_of(b)), to = std::min(group_of(a), group_of(b));
  if (from == to) return;
  Group &kept = groups_[to], &other = groups_[from];
  if (kept.error.empty()) kept.error = other.error;
  try {
    if (kept.error.empty()) kept.wanted = combined(groups_[group_of(b)].wanted, groups_[group_of(a)].wanted);
  } catch (const InvalidArgumentError& error) {
    kept.error = described(error.what());
  }
  if (!kept.who_asks) kept.who_asks = other.who_asks;
  parents_[from] = to;
}

void ColocationGroups::ask_for_own(const Operation& op) {
  if (op.device().empty() || is_follower(op)) return;
  groups_[index_of(op)].wanted = DeviceSpec::parse(op.device());
  groups_[index_of(op)].who_asks = op;
}

void ColocationGroups::follow_classes(const Operation& op) {
  const auto* places = op.find_attr<std::vector<std::string>>("_class");
  if (places == nullptr) return;
  for (const std::string& place : *places) {
    if (!place.starts_with(kPlace)) continue;
    const Operation beside = op.graph().find_operation(place.substr(kPlace.size()));
    if (!beside || index_of(beside) >= operations_.size()) continue;
    unite(op, beside, [&](const std::string& why) {
      return fmt::format("Cannot colocate nodes node {} placed on device {} and node {} placed on device {}: {}",
                         op.name(), shown(groups_[group_of(op)].wanted), beside.name(),
                         shown(groups_[group_of(beside)].wanted), why);
    });
  }
}

void ColocationGroups::follow_references(const Operation& op) {
  if (may_be_divided(op)) return;
  for (const Operation& followed : followed_by(op)) {
    unite(followed, op, [&](const std::string&) {
      return fmt::format(
          "Cannot place the graph because a reference or resource edge connects colocation groups with incompatible "
          "resource devices: {} vs {}. The edge src node is {} , and the dst node is {}",
          shown(groups_[group_of(followed)].wanted), shown(groups_[group_of(op)].wanted), followed.name(), op.name());
    });
  }
}

void ColocationGroups::add_wish_of_follower(const Operation& op) {
  if (op.device().empty() || !is_follower(op)) return;
  Group& group = groups_[group_of(op)];
  try {
    group.wanted = combined(group.wanted, DeviceSpec::parse(op.device()));
    if (!group.who_asks) group.who_asks = op;
  } catch (const InvalidArgumentError&) {
    return;  // the variable is elsewhere: so is the operation
  }
}

}  // namespace longhaul
