#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "longhaul/graph/graph.h"
#include "longhaul/placement/device_list.h"

namespace longhaul {

// Which device each operation of a run goes to. Immutable.
class Placement {
 public:
  bool has(const Operation& op) const { return devices_.contains(op); }
  // A full name. InternalError: the operation was not placed.
  const DeviceSpec& device_of(const Operation& op) const;
  // The same, as a task: "/job:ps/replica:0/task:0".
  std::string task_of(const Operation& op) const { return device_of(op).without_type().to_string(); }
  // All that the operations are on, sorted: whom the run needs.
  std::vector<std::string> tasks() const;

  // "dense/kernel: (VariableV2): /job:ps/replica:0/task:0/device:CPU:0", for log_device_placement.
  std::vector<std::string> lines() const;

 private:
  friend class Placer;
  std::vector<Operation> placed_;  // in the order in which they were given
  std::unordered_map<Operation, DeviceSpec, OperationHash> devices_;
};

struct PlacerOptions {
  // A type of device that the task lacks is replaced by its CPU. A task that does not exist is an error all the same.
  bool allow_soft_placement = false;
};

// Chooses devices for the operations of a session's runs. Variables, queues and the like stay where they were placed
// first, whatever is added to the graph later. One thread at a time.
//
//   an operation asks for a device: the first that matches (DeviceList::find)
//   it takes a variable or resource, or has the attr _class: with that (ColocationGroups)
//   it reports on variables: with them, if they are together
//   a constant whose users are all on one device: there; the shape of a tensor: where that is
//   otherwise: the session's own task
class Placer {
 public:
  explicit Placer(PlacerOptions options = {}) : options_(options) {}

  // Places `needed`, operations of one graph. Only these can be refused: a device that does not exist is no matter to
  // runs that do not name it. InvalidArgumentError: no device matches, or operations that must be together contradict
  // each other.
  Placement place(const Graph& graph, const std::vector<Operation>& needed, const DeviceList& devices);

  // Forgets where variables and resources are: their tasks lost them.
  void forget() { homes_.clear(); }

 private:
  PlacerOptions options_;
  std::map<std::string, DeviceSpec> homes_;  // of variables and resources, by name
};

}  // namespace longhaul
