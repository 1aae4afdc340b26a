#pragma once

#include <c10/core/Device.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/runtime/plan/plan_parts.h"
#include "longhaul/runtime/plan/plan_passes.h"
#include "longhaul/runtime/plan/slot_table.h"

namespace longhaul {

// A plan under construction: its instructions in order, and the slots of their values.
class PlanDraft {
 public:
  PlanParts& parts() { return parts_; }
  SlotTable& slots() { return slots_; }

  // Adds the next instruction, which takes the slots `taken`, and fills all that were added after its first output.
  void place(std::unique_ptr<Instruction> instruction, const std::vector<int>& taken);
  // The slot of the same value on that device; `value` is what the given slot has. A constant is copied now, anything
  // else by an instruction, once for each device.
  int on_device(int slot, const Output& value, c10::Device device);

  PlanParts complete(const NeededGraph& graph) &&;

 private:
  const Value* constant_in(int slot) const;  // nullptr: it has none

  PlanParts parts_;
  SlotTable slots_;
  std::vector<SlotUse> uses_;                             // of each instruction
  std::map<std::pair<int, std::string>, int> elsewhere_;  // by slot and device: the copy's slot
};

}  // namespace longhaul
