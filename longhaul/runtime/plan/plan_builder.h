#pragma once

#include <memory>
#include <unordered_set>
#include <vector>

#include "longhaul/runtime/plan/assign_in_place.h"
#include "longhaul/runtime/plan/needed_graph.h"
#include "longhaul/runtime/plan/op_placement.h"
#include "longhaul/runtime/plan/plan_draft.h"

namespace longhaul {

// Compiles a request: makes an instruction of each operation that it needs (NeededGraph), in their order and on their
// devices (OpPlacement), with slots for their values, and completes the plan (plan_passes.h).
//
//   Plan plan(PlanBuilder(request, *session).build(), session);
class PlanBuilder {
 public:
  // Both outlive the builder. Throws what NeededGraph throws.
  PlanBuilder(const Session::Request& request, SessionState& resources);

  // Call once. InvalidArgumentError: this process cannot run an operation, or what the request asks for cannot be done
  // in one run.
  PlanParts build() &&;

 private:
  int slot_of(const Output& output, bool after_write);
  int add_read(const Output& variable);
  void read_random_state(const Operation& op);
  void add_feeds();
  void add_reads();
  void add(const Operation& op);
  void add_loss_check(const Operation& op);
  void add_aten(const Operation& op);
  void add_kernel(const Operation& op);
  void add_assignment(const Operation& assign, const ComputedInPlace& computed);
  void add_host(const Operation& op);
  void add_exchange(const Operation& op);
  void add_change_of_restore();
  std::vector<int> input_slots(const Operation& op);
  int output_slots(const Operation& op);
  void copy_inputs_of_writes(const std::vector<Operation>& ordered);
  void add_fetches();
  bool has_gpus() const { return resources_.task().device_table().gpus() > 0; }

  const Session::Request& request_;
  SessionState& resources_;
  const NeededGraph graph_;
  const AssignmentsInPlace in_place_;
  OpPlacement placement_;
  PlanDraft draft_;
  std::unordered_set<Operation, OperationHash> checked_losses_;
};

}  // namespace longhaul
