#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/runtime/plan/instruction.h"
#include "longhaul/session/step_trace.h"

namespace longhaul {

// A compiled request, made by a PlanBuilder and run by a Plan. Immutable once it is made.
//
// Values are in numbered slots; each execution has its own (Frame). A value's ValuePlace is chosen here, both for feeds
// and for values passed between instructions.
struct PlanParts {
  struct Feed {
    Output target;
    int slot;
    ValuePlace place;
  };
  struct Fetched {
    int slot;       // -1: an operation, which has no value
    bool may_move;  // the slot is not used afterwards
  };
  // A plan that consists of one operation without libtorch, from feeds to fetches: mostly a queue's enqueue or dequeue.
  // It needs no frame.
  struct SingleCall {
    const HostInstruction* instruction;
    std::vector<int> feeds;     // for each input: the feed; -1: a resource
    std::vector<int> outputs;   // for each fetch: the output; -1: the operation
    bool all_in_order = false;  // the fetches are the outputs
  };

  bool writes_variables() const { return first_write < end_of_writes; }

  std::vector<Feed> feeds;
  std::vector<Fetched> fetches;
  std::vector<int> fetched_from_devices;                   // slots, each once
  std::vector<std::unique_ptr<Instruction>> instructions;  // in the order in which they run
  size_t end_of_reads = 0;                                 // of variables, at the start
  size_t first_write = 0, end_of_writes = 0;
  std::vector<std::shared_ptr<VariableSlot>> variables;  // of all instructions, which a reset may remove from the task
  std::vector<VariableSlot*> written;                    // by the writes; each once
  std::vector<size_t> checks_first;  // writes whose check does not depend on an earlier write of the plan
  std::vector<std::shared_ptr<RandomStream>> random_streams;  // one for each of Frame::draws
  std::vector<std::pair<int, Value>> constants;               // and their slots
  std::vector<bool> is_constant;                              // of each slot
  // Of those operations that are not where their own device says, or not on the host if they have none.
  DevicesOfOperations devices;
  int num_buffers = 0;  // Frame::buffers
  bool is_snapshot = false;
  bool only_host = false;  // no instruction needs libtorch
  std::optional<SingleCall> single_call;
};

}  // namespace longhaul
