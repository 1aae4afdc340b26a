#include "longhaul/runtime/plan/plan_draft.h"

#include <algorithm>

#include "longhaul/runtime/plan/copy_instruction.h"

namespace longhaul {

void PlanDraft::place(std::unique_ptr<Instruction> instruction, const std::vector<int>& taken) {
  if (instruction->writes()) {
    if (parts_.first_write == parts_.end_of_writes) parts_.first_write = parts_.instructions.size();
    parts_.end_of_writes = parts_.instructions.size() + 1;
  }
  uses_.push_back({.taken = taken, .num_filled = slots_.size() - instruction->first_output()});
  parts_.instructions.push_back(std::move(instruction));
}

int PlanDraft::on_device(int slot, const Output& value, c10::Device device) {
  if (slots_.device_of(slot) == device) return slot;
  const auto [known, is_new] = elsewhere_.try_emplace({slot, device.str()}, slots_.size());
  if (!is_new) return known->second;
  const int copy = slots_.add(device);
  if (const Value* constant = constant_in(slot)) {
    const at::Tensor there = constant->tensor.to(device);
    parts_.constants.emplace_back(copy, Value(there));
  } else {
    place(std::make_unique<CopyInstruction>(value.op(), slot, device, copy), {slot});
  }
  return copy;
}

const Value* PlanDraft::constant_in(int slot) const {
  const auto found = std::find_if(parts_.constants.begin(), parts_.constants.end(),
                                  [&](const auto& constant) { return constant.first == slot; });
  return found == parts_.constants.end() ? nullptr : &found->second;
}

PlanParts PlanDraft::complete(const NeededGraph& graph) && {
  complete_plan(parts_, graph, slots_.size(), uses_);
  return std::move(parts_);
}

}  // namespace longhaul
