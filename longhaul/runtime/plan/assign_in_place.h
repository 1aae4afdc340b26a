#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "longhaul/runtime/plan/instruction.h"
#include "longhaul/runtime/plan/needed_graph.h"

namespace longhaul {

// An operation that writes to given memory.
struct ComputedInPlace {
  Operation op;
  AtenCall call;
  OutCall out;
};

// The assignments of a plan that need no memory for what they assign, each with the operation that computes it: an
// elementwise one of the variable itself, such as w := 0.999 w, which nobody else takes, of a variable that the plan
// writes once.
struct AssignmentsInPlace {
  AssignmentsInPlace(const Session::Request& request, const NeededGraph& graph);

  std::unordered_map<Operation, ComputedInPlace, OperationHash> computed;  // for each
  std::unordered_set<Operation, OperationHash> delayed;                    // those that compute, until they assign
};

// Such an assignment: the operation writes over the variable, in one pass over memory. It takes the variable's value at
// that moment: an update that another run has made since this one began is kept, as by AssignAdd. Where somebody holds
// the variable's value, such as a snapshot, the result goes to new memory. A variable that does not have its declared
// shape, or an input of another one, is computed by libtorch first, and then assigned.
class AssignInPlace : public Instruction {
 public:
  struct Parts {
    VariableSlot* variable = nullptr;
    int read = 0;                               // the slot of the variable's value among the inputs
    std::vector<int> inputs;                    // the operation's
    int value = 0;                              // a slot for what libtorch computes first
    OutCall out;                                // writes to given memory
    std::unique_ptr<AtenInstruction> compute;   // into that slot
    std::unique_ptr<KernelInstruction> assign;  // from that slot
  };
  AssignInPlace(Operation assign, Shape shape, Parts parts, int first_output)
      : Instruction(assign, first_output), sizes_(shape.dims()), parts_(std::move(parts)) {}

  void run(Frame& frame, SessionState& session) const override;
  void check(Frame& frame, SessionState& session) const override;
  std::span<VariableSlot* const> written() const override { return {&parts_.variable, 1}; }

 private:
  bool fits(const Frame& frame) const;
  void write(Frame& frame, const at::Tensor& source, const at::Tensor& destination) const;

  const std::vector<int64_t> sizes_;
  const Parts parts_;
};

}  // namespace longhaul
