#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <unordered_map>

#include "longhaul/runtime/plan/needed_graph.h"
#include "longhaul/runtime/state/session_state.h"
#include "longhaul/session/step_trace.h"

namespace longhaul {

// Where the operations of one plan run, and where the values that they give are. One thread.
//
//   it works on a variable: where that is
//   it needs no libtorch: the host, also in the scope of a GPU
//   it names a device: there
//   it has no kernel for GPUs, or takes and gives nothing but small values of the host, such as a learning rate's: the
//   host
//   it takes a value of a GPU: that one
//   otherwise: GPU:0, if the task has one
//
// Variables without dimensions, such as the global step, are in the host's memory wherever they are placed: each step
// looks at them. So are a program's own values. A constant is copied where it is wanted, once for each plan.
class OpPlacement {
 public:
  // Both outlive this object.
  OpPlacement(SessionState& session, const NeededGraph& graph);

  // Chooses where the operation runs; call it in the order in which they run. InvalidArgumentError: "Cannot assign a
  // device for operation NAME", because the task has no such device, or libtorch no kernel of the operator for it, and
  // SessionOptions::allow_soft_placement is not set.
  c10::Device place(const Operation& op);
  c10::Device device_of_placed(const Operation& op) const;
  // Where the value of a placed operation is, or of a variable, a feed or a constant.
  c10::Device device_of(const Output& value) const;
  // Those placed on another device than they ask for, or than the host if they ask for none.
  const DevicesOfOperations& moved() const { return moved_; }

 private:
  void note(const Operation& op, c10::Device device);
  std::optional<c10::Device> asked_for(const Operation& op) const;
  c10::Device choose(const Operation& op, std::optional<c10::Device> asked) const;
  c10::Device place_of_variable(const Operation& variable) const;
  c10::Device for_operator(const Operation& op, std::optional<c10::Device> asked) const;
  bool is_small_on_host(const Operation& op) const;
  [[noreturn]] void refuse(const Operation& op, const std::string& why) const;

  SessionState& session_;
  const NeededGraph& graph_;
  const DeviceTable& devices_;
  std::unordered_map<Operation, c10::Device, OperationHash> placed_;  // those that are not on the host
  DevicesOfOperations moved_;
};

}  // namespace longhaul
