#pragma once

#include <vector>

#include "longhaul/runtime/plan/needed_graph.h"
#include "longhaul/runtime/plan/plan_parts.h"

namespace longhaul {

// The slots of one instruction: those that it takes (-1: none, for a variable), and how many it fills.
struct SlotUse {
  std::vector<int> taken;
  int num_filled = 0;
};

// Fills in what follows from the instructions, feeds and fetches of a plan with that many slots: its constants, which
// values may be moved and are released, what is written and checked first, and whether it is a single call. `uses` is
// of each instruction. InvalidArgumentError: an operation that may wait is between writes.
void complete_plan(PlanParts& parts, const NeededGraph& graph, int num_slots, const std::vector<SlotUse>& uses);

}  // namespace longhaul
