#include "longhaul/session/step_fetch.h"

#include <algorithm>
#include <unordered_set>

#include "longhaul/base/log.h"
#include "longhaul/session/needed_operations.h"

namespace longhaul {

bool goes_along(const std::vector<Output>& outputs, const Session::Request& request) {
  std::vector<Operation> own, more;
  for (const Fetch::Target& fetch : request.fetches) own.push_back(fetch.op);
  for (const Output& output : outputs) more.push_back(output.op());
  const std::vector<Operation> needed = needed_operations(own, request.feeds);
  const std::vector<Operation> wanted = needed_operations(more, request.feeds);
  const std::unordered_set<Operation, OperationHash> taken(needed.begin(), needed.end());
  return std::all_of(wanted.begin(), wanted.end(), [&](const Operation& op) {
    return (op.traits() & (kTakesInput | kRandom)) == 0 || taken.contains(op);
  });
}

void deliver(const StepFetch& fetch, std::vector<Tensor> values, std::exception_ptr error) {
  try {
    fetch.done(std::move(values), std::move(error));
  } catch (const std::exception& failure) {
    log_error("the callback for values fetched with a step failed: {}", failure.what());
  }
}

}  // namespace longhaul
