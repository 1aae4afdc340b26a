#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "longhaul/graph/device_spec.h"
#include "longhaul/graph/graph.h"

namespace longhaul {

// Chooses the device of an operation that is about to be added. `op.device` is the device set by scopes nested inside
// this one; empty if none. The result replaces it. An empty result: no device.
using DeviceFunction = std::function<std::string(const OperationSpec& op)>;

// The place where operations are added: a graph, a name prefix, a device and control inputs. A Scope is a small value;
// with_*, sub() and variable_scope() return changed copies.
class Scope {
 public:
  explicit Scope(Graph& graph) : graph_(&graph) {}

  Graph& graph() const { return *graph_; }
  const std::string& prefix() const { return prefix_; }  // "layer1/" or empty

  // Returns a scope inside this one. Its name is made unique ("layer1", "layer1_1").
  Scope sub(std::string_view name) const;

  // The same, but the name is not made unique. Use it to continue in a scope that was entered before.
  Scope within(std::string_view name) const;

  // Like `with tf.variable_scope(name)`. For operations, it is the same as sub(). For variables, its name is never made
  // unique. Unlike other scopes, it is also a prefix for the names of optimizer slots, moving averages and the step
  // counter:
  //
  //   Adam's state of w        in root.sub("train")     in root.variable_scope("train")     there for the second time
  //   the slots                w/Adam, w/Adam_1         train/w/Adam, train/w/Adam_1        train/w/Adam_2, ...
  //   the powers of betas      train/beta1_power        train/beta1_power                   train_1/beta1_power
  //   a variable's own name    train/w                  train/w                             train/w: it exists already
  // An empty name: this scope itself.
  Scope variable_scope(std::string_view name) const;

  // The prefix of variable names here: prefix(), unless a variable scope's name was taken.
  const std::string& variable_prefix() const { return variable_prefix_; }
  // The prefix from the enclosing variable scopes alone: "train/" or empty.
  const std::string& slot_prefix() const { return slot_prefix_; }
  // Returns a scope with the same device and control inputs, but no name prefix: for full names.
  Scope outermost() const;

  // Operations added in the returned scope get this device. Nested devices are merged; the innermost scope decides what
  // several specify. An operation that takes variables or resources by reference (an assignment, an optimizer's update,
  // a queue's operation) gets their device, whatever the scopes specify, unless their devices differ.
  Scope with_device(std::string_view device) const;
  // The same with a function, which is called once for each operation, after the scopes nested inside. All copies of
  // the scope call the same function. An empty one is nullptr.
  //
  //   const Scope scope = root.with_device(replica_device_setter({.ps_tasks = 2}));
  Scope with_device(DeviceFunction function) const;
  // In the returned scope, devices specified so far are ignored.
  Scope with_device(std::nullptr_t) const;
  // Operations added in the returned scope are where `op` is: they get its device, whatever was specified so far.
  Scope on_device_of(const Operation& op) const;
  // The same, and they stay there if `op` is placed elsewhere: they get the attr `_class` with "loc:@NAME".
  Scope colocate_with(const Operation& op) const;

  // Operations added in the returned scope run after these operations.
  Scope with_control_dependencies(std::vector<Operation> operations) const;
  // Returns a scope without control inputs, for a variable's own operations.
  Scope without_control_dependencies() const;

  // Adds an operation; `name` is relative to this scope.
  Operation add(std::string type, std::string_view name, std::vector<Output> inputs = {}, Attrs attrs = {}) const;

 private:
  using Device = std::variant<DeviceSpec, std::shared_ptr<const DeviceFunction>>;

  static std::string chosen_device(const Device& device, const OperationSpec& op);
  void add_colocations(OperationSpec* op) const;

  Graph* graph_;
  std::string prefix_, variable_prefix_, slot_prefix_;
  std::vector<Device> devices_;           // the outermost scope's first
  std::vector<std::string> colocations_;  // "loc:@NAME", sorted
  std::vector<Operation> control_inputs_;
};

}  // namespace longhaul
