#include "longhaul/train/supervisor/missing_steps.h"

#include <algorithm>

#include "longhaul/base/log.h"
#include "longhaul/train/saving/step_advice.h"

namespace longhaul {
namespace {

// Of the step, which may be a read of it.
Operation step_variable(const Output& global_step) {
  const std::vector<Output>& inputs = global_step.op().inputs();
  return inputs.empty() ? global_step.op() : inputs.front().op();
}

bool is_counted(const Output& global_step) {
  const Operation variable = step_variable(global_step);
  const std::vector<Operation> operations = global_step.graph().operations();
  return std::any_of(operations.begin(), operations.end(), [&](const Operation& op) {
    return op.type() == "AssignAdd" && op.inputs().front().op() == variable;
  });
}

std::string advice_for(const Output& global_step) {
  if (!global_step.valid()) return "";
  return step_advice(global_step.graph(), is_counted(global_step)
                                              ? "run the operation that counts it, which minimize() "
                                                "or apply_gradients() returned, in each step"
                                              : "");
}

}  // namespace

MissingSteps::MissingSteps(const Output& global_step)
    : name_(global_step.valid() ? step_variable(global_step).name() : ""), advice_(advice_for(global_step)) {}

void MissingSteps::session_begins(Seconds now, std::optional<int64_t> step) {
  begin_.reset();
  if (step == 0 && !advice_.empty()) begin_ = now;
}

void MissingSteps::look(Seconds now, const Seen& seen) {
  constexpr Seconds kLongestStart{600};
  look_after(kLongestStart, now, seen);
}

void MissingSteps::ends(Seconds now, const Seen& seen) {
  constexpr Seconds kLongerThanATrial{60};
  look_after(kLongerThanATrial, now, seen);
}

void MissingSteps::look_after(Seconds time, Seconds now, const Seen& seen) {
  if (!begin_ || !seen.step) return;
  const Seconds since = now - *begin_;
  if (*seen.step == 0 && (since < time || seen.is_under_way)) return;
  begin_.reset();
  if (*seen.step != 0) return;
  log_warning(
      "no step has been made since the session began, {:.0f} s ago: the global step ({}) is still 0, and checkpoints "
      "contain what it began with. To train, {}",
      since.count(), name_, advice_);
}

}  // namespace longhaul
