#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "longhaul/graph/device_spec.h"
#include "longhaul/graph/graph.h"

namespace longhaul {

// Where operations are added: a graph, a name prefix, a device and control inputs. A small value; each with_* and sub()
// gives a changed copy.
class Scope {
 public:
  explicit Scope(Graph& graph) : graph_(&graph) {}

  Graph& graph() const { return *graph_; }
  const std::string& prefix() const { return prefix_; }  // "layer1/" or empty

  // A scope inside this one; its name is made unique ("layer1", "layer1_1").
  Scope sub(std::string_view name) const;

  // The same names, without making them unique: to go on in a scope that was entered before.
  Scope within(std::string_view name) const;

  // What is added gets this device, where it says nothing else itself. Nested devices are merged.
  Scope with_device(std::string_view device) const;

  // What is added runs after these operations.
  Scope with_control_dependencies(std::vector<Operation> operations) const;

  // Adds an operation; `name` is relative to this scope.
  Operation add(std::string type, std::string_view name, std::vector<Output> inputs = {}, Attrs attrs = {}) const;

 private:
  Graph* graph_;
  std::string prefix_;
  DeviceSpec device_;
  std::vector<Operation> control_inputs_;
};

}  // namespace longhaul
