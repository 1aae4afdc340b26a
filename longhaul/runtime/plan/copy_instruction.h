#pragma once

#include <c10/core/Device.h>

#include "longhaul/runtime/devices/host_copies.h"
#include "longhaul/runtime/plan/instruction.h"

namespace longhaul {

// Copies a value to another device: an edge between operations that are on different ones. A copy to the host waits
// until the value is there; any other takes its place in the order of the device's work.
class CopyInstruction : public Instruction {
 public:
  // `op`: gives the value.
  CopyInstruction(Operation op, int input, c10::Device to, int output)
      : Instruction(op, output), input_(input), to_(to) {}
  void run(Frame& frame, SessionState&) const override {
    const at::Tensor& value = frame.slots[static_cast<size_t>(input_)].tensor;
    frame.slots[static_cast<size_t>(first_output())] = Value(to_.is_cpu() ? copy_to_host(value) : value.to(to_));
  }
  uint32_t traits() const override { return kPure; }
  bool is_traced() const override { return false; }

 private:
  const int input_;
  const c10::Device to_;
};

}  // namespace longhaul
