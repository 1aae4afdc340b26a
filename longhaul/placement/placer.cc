#include "longhaul/placement/placer.h"

#include <fmt/format.h>

#include <set>

#include "longhaul/base/error.h"
#include "longhaul/placement/colocation_groups.h"

namespace longhaul {
namespace {

bool has_state(const Operation& op) {
  return op.type() == "VariableV2" || (op.traits() & kIsResource) != 0;
}

bool goes_with_users(const Operation& op) {
  return op.type() == "Const" && op.device().empty() && op.control_inputs().empty();
}
bool goes_with_input(const Operation& op) {
  return op.type() == "Shape" && op.device().empty();
}
bool goes_with_variables(const Operation& op) {
  return may_be_divided(op);
}

[[noreturn]] void refuse_device(const Operation& asks, const Operation& needed, const DeviceList& devices) {
  const bool gpu = DeviceSpec::parse(asks.device()).type == "GPU";
  throw InvalidArgumentError(
      fmt::format("Cannot assign a device for operation {}: node {} was explicitly assigned to {} but available "
                  "devices are [ {} ]. "
                  "Make sure the device specification refers to a valid device.{}\n\t [[{}]]",
                  needed.name(), asks.name(), asks.device(), fmt::join(devices.names(), ", "),
                  gpu ? " The requested device appears to be a GPU, but CUDA is not enabled." : "", needed.name()));
}

// One call of Placer::place.
class Placing {
 public:
  using Homes = std::map<std::string, DeviceSpec>;
  using Devices = std::unordered_map<Operation, DeviceSpec, OperationHash>;

  Placing(const Graph& graph, const DeviceList& devices, const PlacerOptions& options, Homes& homes)
      : groups_(graph, options.allow_soft_placement),
        available_(devices),
        soft_(options.allow_soft_placement),
        homes_(homes) {}

  Devices place(const std::vector<Operation>& needed) && {
    find_users(needed);
    for (const Operation& op : needed) {
      if (!is_free(op)) place_in_group(op);
    }
    for (const Operation& op : needed) {
      if (is_free(op) && goes_with_input(op)) place_with_input(op);
      if (is_free(op) && goes_with_variables(op)) place_with_variables(op);
    }
    for (const Operation& op : needed) {
      if (is_free(op) && goes_with_users(op)) place_with_users(op);
    }
    return std::move(chosen_);
  }

 private:
  bool is_alone(const Operation& op) { return groups_.members(groups_.group_of(op)).size() == 1; }
  bool is_free(const Operation& op) {
    return (goes_with_users(op) || goes_with_input(op) || goes_with_variables(op)) && is_alone(op);
  }

  void find_users(const std::vector<Operation>& needed) {
    for (const Operation& op : needed) {
      for (const Output& input : op.inputs()) users_[input.op()].push_back(op);
    }
  }

  void place_in_group(const Operation& op) {
    const size_t group = groups_.group_of(op);
    const auto known = of_groups_.find(group);
    const DeviceSpec device = known != of_groups_.end() ? known->second : home_or_device(op, group);
    of_groups_.emplace(group, device);
    chosen_.emplace(op, device);
  }

  DeviceSpec home_or_device(const Operation& op, size_t group) {
    const DeviceSpec& wanted = groups_.wanted(group);
    const std::optional<DeviceSpec> home = home_of(group);
    const DeviceSpec device = home && available_.find(*home) == home ? *home : find_device(op, group, wanted);
    for (const Operation& member : groups_.members(group)) {
      if (has_state(member)) homes_.insert_or_assign(member.name(), device);
    }
    return device;
  }

  std::optional<DeviceSpec> home_of(size_t group) const {
    for (const Operation& member : groups_.members(group)) {
      const auto home = homes_.find(member.name());
      if (has_state(member) && home != homes_.end()) return home->second;
    }
    return std::nullopt;
  }

  DeviceSpec find_device(const Operation& op, size_t group, const DeviceSpec& wanted) const {
    if (const auto found = available_.find(wanted)) return *found;
    if (soft_) {
      DeviceSpec cpu = wanted.without_type();
      cpu.type = "CPU";
      if (const auto found = available_.find(cpu)) return *found;
    }
    const Operation asks = groups_.who_asks(group);
    refuse_device(asks ? asks : op, op, available_);
  }

  void place_with_input(const Operation& op) {
    const auto input = chosen_.find(op.inputs()[0].op());
    if (input == chosen_.end()) return place_in_group(op);
    chosen_.emplace(op, input->second);
  }

  // On the session's own task, if they are not all on one device.
  void place_with_variables(const Operation& op) {
    std::optional<DeviceSpec> common;
    for (const Output& variable : op.inputs()) {
      const auto device = chosen_.find(variable.op());
      const bool is_other = device == chosen_.end() || (common && *common != device->second);
      if (is_other) return void(chosen_.emplace(op, find_device(op, groups_.group_of(op), DeviceSpec())));
      common = device->second;
    }
    chosen_.emplace(op, common ? *common : find_device(op, groups_.group_of(op), DeviceSpec()));
  }

  void place_with_users(const Operation& op) {
    const std::vector<Operation>& users = users_[op];
    for (const Operation& user : users) {
      if (!chosen_.contains(user) || chosen_.at(user) != chosen_.at(users.front())) return place_in_group(op);
    }
    if (users.empty()) return place_in_group(op);
    chosen_.emplace(op, chosen_.at(users.front()));
  }

  ColocationGroups groups_;
  const DeviceList& available_;
  const bool soft_;
  Homes& homes_;
  std::unordered_map<Operation, std::vector<Operation>, OperationHash> users_;  // among the needed
  std::unordered_map<size_t, DeviceSpec> of_groups_;
  Devices chosen_;
};

}  // namespace

const DeviceSpec& Placement::device_of(const Operation& op) const {
  const auto it = devices_.find(op);
  if (it == devices_.end()) throw InternalError(fmt::format("operation {} has no device", op.name()));
  return it->second;
}

std::vector<std::string> Placement::tasks() const {
  std::set<std::string> tasks;
  for (const Operation& op : placed_) tasks.insert(task_of(op));
  return {tasks.begin(), tasks.end()};
}

std::vector<std::string> Placement::lines() const {
  std::vector<std::string> lines;
  for (const Operation& op : placed_) {
    lines.push_back(fmt::format("{}: ({}): {}", op.name(), op.type(), device_of(op).to_string()));
  }
  return lines;
}

Placement Placer::place(const Graph& graph, const std::vector<Operation>& needed, const DeviceList& devices) {
  Placement placement;
  placement.devices_ = Placing(graph, devices, options_, homes_).place(needed);
  placement.placed_ = needed;
  return placement;
}

}  // namespace longhaul
