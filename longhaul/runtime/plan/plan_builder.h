#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "longhaul/runtime/plan/plan_parts.h"
#include "longhaul/session/session.h"

namespace longhaul {

// Compiles a request: prunes the graph, orders its operations, numbers the slots and finds their last uses.
//
//   Plan plan(PlanBuilder(request, resources).build(), resources);
class PlanBuilder {
 public:
  // Both outlive the builder, and the resources also outlive its result.
  PlanBuilder(const Session::Request& request, SessionResources& resources)
      : request_(request), resources_(resources) {}

  // Call once. InvalidArgumentError: the fetches cannot be computed from the feeds, this process cannot run an
  // operation, or a snapshot writes variables.
  PlanParts build() &&;

 private:
  using OperationSet = std::unordered_set<Operation, OperationHash>;

  void find_needed();
  bool is_fed(const Output& output) const { return fed_.contains(output); }
  bool depends_on_write(const Operation& op) const { return after_write_.contains(op); }
  bool depends_on_any_of(const Operation& op, const OperationSet& set) const;
  void find_what_follows_writes();
  void find_places();
  ValuePlace place_of(const Output& output) const {
    return for_libtorch_.contains(output) ? ValuePlace::kLibtorch : ValuePlace::kHost;
  }
  std::vector<Operation> ordered() const;

  int new_slot() { return num_slots_++; }
  int slot_of(const Output& output, bool after_write);
  int read_slot(const Output& variable, bool after_write);
  std::optional<size_t> draw_of(const Operation& op);
  void read_random_state(const Operation& op);
  void add_feeds();
  void add_reads();
  void add(const Operation& op);
  void add_loss_check(const Operation& op);
  void add_aten(const Operation& op);
  void add_kernel(const Operation& op);
  void add_host(const Operation& op);
  std::vector<int> input_slots(const Operation& op);
  int output_slots(const Operation& op);
  void place(std::unique_ptr<Instruction> instruction, const std::vector<int>& uses);
  void add_fetches();
  void refuse_waits_between_writes() const;
  void find_constants();
  void find_moves();
  void find_written();
  void find_checks();
  void find_last_uses();
  void find_single_call();

  const Session::Request& request_;
  SessionResources& resources_;
  PlanParts parts_;
  int num_slots_ = 0;
  std::unordered_set<Output, OutputHash> fed_;
  std::vector<Operation> needed_;  // in order of creation, which respects dependencies
  OperationSet after_write_;
  std::unordered_set<Output, OutputHash> for_libtorch_;  // values taken by libtorch operations
  std::unordered_map<Output, int, OutputHash> slots_;
  std::unordered_map<Output, int, OutputHash> early_reads_;
  OperationSet checked_losses_;
  std::vector<std::vector<int>> uses_;  // of each instruction: the slots that it takes
  std::vector<int> num_results_;        // ... and how many it fills
};

}  // namespace longhaul
