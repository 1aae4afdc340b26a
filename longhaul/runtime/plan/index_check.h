#pragma once

#include <memory>
#include <vector>

#include "longhaul/runtime/plan/instruction.h"
#include "longhaul/runtime/plan/slot_table.h"

namespace longhaul {

// Looks at indices that come from the host before an operation takes them on a GPU: there one that is out of range
// would end the use of the device for the whole process. InvalidArgumentError: there is one; the message names it.
class IndexCheck : public Instruction {
 public:
  struct Parts {
    int table = -1, indices = -1;  // slots
    bool is_loss = false;          // of labels: the table's classes are in its second dimension
    int64_t dim = 0;
    std::optional<int64_t> ignored;
  };
  IndexCheck(Operation op, const Parts& parts, int first_output) : Instruction(op, first_output), parts_(parts) {}
  void run(Frame& frame, SessionState&) const override;
  bool is_traced() const override { return false; }
  std::vector<int> taken() const { return {parts_.table, parts_.indices}; }

 private:
  const Parts parts_;
};

// Null: the operation, which has its inputs in these slots, looks nothing up, or its indices are not on the host.
std::unique_ptr<IndexCheck> index_check_of(const Operation& op, const AtenCall& call, const std::vector<int>& inputs,
                                           const SlotTable& slots);

}  // namespace longhaul
