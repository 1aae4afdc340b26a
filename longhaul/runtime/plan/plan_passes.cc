#include "longhaul/runtime/plan/plan_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>

namespace longhaul {
namespace {

// Nobody may wait inside the gate: snapshots would wait, too.
void refuse_waits_between_writes(const PlanParts& parts) {
  for (size_t i = parts.first_write; i < parts.end_of_writes; ++i) {
    const Operation& op = parts.instructions[i]->op();
    if ((parts.instructions[i]->traits() & kMayWait) == 0) continue;
    throw InvalidArgumentError(
        fmt::format("{} ({}) may block, and this run changes variables before and after it: split it into two runs",
                    op.name(), op.type()));
  }
}

void find_constants(PlanParts& parts, int num_slots) {
  parts.is_constant.assign(static_cast<size_t>(num_slots), false);
  for (const auto& [slot, value] : parts.constants) parts.is_constant[static_cast<size_t>(slot)] = true;
}

// What several fetches give is moved into the last one's result.
void find_moves(PlanParts& parts) {
  for (auto fetch = parts.fetches.begin(); fetch != parts.fetches.end(); ++fetch) {
    const bool again = std::any_of(fetch + 1, parts.fetches.end(),
                                   [&](const PlanParts::Fetched& later) { return later.slot == fetch->slot; });
    fetch->may_move = fetch->slot >= 0 && !again && !parts.is_constant[static_cast<size_t>(fetch->slot)];
  }
}

// Each once, in the order of their addresses.
void find_written(PlanParts& parts) {
  std::vector<VariableSlot*>& all = parts.written;
  for (size_t i = parts.first_write; i < parts.end_of_writes; ++i) {
    const auto written = parts.instructions[i]->written();
    all.insert(all.end(), written.begin(), written.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

void find_checks(PlanParts& parts, const NeededGraph& graph) {
  std::unordered_set<const VariableSlot*> written_before;
  for (size_t i = parts.first_write; i < parts.end_of_writes; ++i) {
    const Instruction& instruction = *parts.instructions[i];
    if (instruction.written().empty()) continue;
    bool first = !graph.depends_on_write(instruction.op());
    for (const VariableSlot* variable : instruction.written()) first &= written_before.insert(variable).second;
    if (first) parts.checks_first.push_back(i);
  }
}

// Each slot is emptied after its last use, so that before the gate nothing holds a variable's bytes any more; what is
// used last by an instruction may be moved into it.
void find_last_uses(PlanParts& parts, const std::vector<SlotUse>& uses) {
  std::vector<bool> needed_later = parts.is_constant;
  for (const auto& [slot, may_move] : parts.fetches) {
    if (slot >= 0) needed_later[static_cast<size_t>(slot)] = true;
  }
  for (size_t i = parts.instructions.size(); i-- > 0;) {
    Instruction& instruction = *parts.instructions[i];
    for (int slot = instruction.first_output(); slot < instruction.first_output() + uses[i].num_filled; ++slot) {
      if (!needed_later[static_cast<size_t>(slot)]) instruction.release_after(slot);
    }
    for (int slot : uses[i].taken) {
      if (slot < 0 || needed_later[static_cast<size_t>(slot)]) continue;
      needed_later[static_cast<size_t>(slot)] = true;
      instruction.release_after(slot);
      instruction.allow_move(slot);
    }
  }
}

void find_single_call(PlanParts& parts) {
  if (parts.instructions.size() != 1 || !parts.only_host || parts.is_snapshot || !parts.random_streams.empty()) return;
  PlanParts::SingleCall single{.instruction = parts.instructions[0]->as_host()};
  for (int slot : single.instruction->inputs()) {
    const auto feed =
        std::find_if(parts.feeds.begin(), parts.feeds.end(), [&](const auto& fed) { return fed.slot == slot; });
    if (slot >= 0 && feed == parts.feeds.end()) return;
    single.feeds.push_back(slot < 0 ? -1 : static_cast<int>(feed - parts.feeds.begin()));
  }
  const int num_outputs = single.instruction->op().num_outputs();
  for (const auto& [slot, may_move] : parts.fetches) {
    const int output = slot < 0 ? -1 : slot - single.instruction->first_output();
    if (slot >= 0 && (output < 0 || output >= num_outputs)) return;
    single.outputs.push_back(output);
  }
  std::vector<int> in_order(static_cast<size_t>(num_outputs));
  std::iota(in_order.begin(), in_order.end(), 0);
  single.all_in_order = single.outputs == in_order;
  parts.single_call = std::move(single);
}

}  // namespace

void complete_plan(PlanParts& parts, const NeededGraph& graph, int num_slots, const std::vector<SlotUse>& uses) {
  refuse_waits_between_writes(parts);
  find_constants(parts, num_slots);
  find_moves(parts);
  find_written(parts);
  find_checks(parts, graph);
  find_last_uses(parts, uses);
  parts.only_host = std::all_of(parts.instructions.begin(), parts.instructions.end(),
                                [](const auto& instruction) { return instruction->as_host() != nullptr; });
  find_single_call(parts);
}

}  // namespace longhaul
