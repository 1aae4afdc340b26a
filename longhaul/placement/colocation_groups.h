#pragma once

#include <optional>
#include <string>
#include <vector>

#include "longhaul/graph/device_spec.h"
#include "longhaul/graph/graph.h"

namespace longhaul {

// Whether the operation takes variables that need not be together: a report of those that are not initialised, which
// each task makes of its own. They are joined where the operation is (RunSplit).
bool may_be_divided(const Operation& op);

// The operations of a graph that must be on one device, in groups: what takes a variable or a resource is with it
// (unless it may be divided), and
// an operation with the attr _class is where that says ("loc:@NAME"; a name that does not exist is ignored). Most
// groups have one operation.
//
// What a group asks for is what its members ask for together. A member that only takes a variable gives way to it: its
// own request counts where it contradicts nothing, and is ignored otherwise.
class ColocationGroups {
 public:
  // With `soft`, contradicting types of devices are no error: the group asks for none. The graph must outlive this.
  ColocationGroups(const Graph& graph, bool soft);

  // The group's number, the same for all members.
  size_t group_of(const Operation& op);
  // What the group asks for. InvalidArgumentError: members contradict each other.
  const DeviceSpec& wanted(size_t group) const;
  // The first of its members that asks for a device; invalid: none does.
  Operation who_asks(size_t group) const { return groups_[group].who_asks; }
  // In order of creation.
  const std::vector<Operation>& members(size_t group) const { return groups_[group].members; }

 private:
  struct Group {
    std::vector<Operation> members;
    DeviceSpec wanted;
    Operation who_asks;
    std::string error;  // empty: none
  };

  void ask_for_own(const Operation& op);
  void follow_classes(const Operation& op);
  void follow_references(const Operation& op);
  void add_wish_of_follower(const Operation& op);
  // Makes one group of both; with a contradiction, one whose error is `described` with it.
  template <typename Describe>
  void unite(const Operation& a, const Operation& b, const Describe& described);
  DeviceSpec combined(const DeviceSpec& a, const DeviceSpec& b) const;

  const std::vector<Operation> operations_;  // by id
  const bool soft_;
  std::vector<size_t> parents_;  // of each operation, towards its group's number
  std::vector<Group> groups_;    // by number; those of other operations are empty
};

}  // namespace longhaul
