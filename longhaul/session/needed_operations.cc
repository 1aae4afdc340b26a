#include "longhaul/session/needed_operations.h"

#include <unordered_set>

namespace longhaul {

std::vector<Operation> needed_operations(const std::vector<Operation>& targets, const std::vector<Output>& feeds) {
  const std::unordered_set<Output, OutputHash> fed(feeds.begin(), feeds.end());
  std::vector<Operation> needed;
  std::unordered_set<Operation, OperationHash> seen;
  const auto visit = [&](const Operation& op) {
    if (seen.insert(op).second) needed.push_back(op);
  };
  for (const Operation& target : targets) visit(target);
  for (size_t i = 0; i < needed.size(); ++i) {
    const Operation op = needed[i];
    for (const Output& input : op.inputs()) {
      if (!fed.contains(input)) visit(input.op());
    }
    for (const Operation& control : op.control_inputs()) visit(control);
  }
  return needed;
}

}  // namespace longhaul
