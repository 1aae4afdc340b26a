#include "longhaul/train/reporting/step_rate.h"

#include <limits>

namespace longhaul {

double steps_per_second(int64_t steps, Seconds elapsed) {
  if (elapsed > Seconds{0}) return static_cast<double>(steps) / elapsed.count();
  return steps == 0 ? 0 : std::numeric_limits<double>::infinity();
}

std::string step_name(const Output& global_step) {
  const Operation op = global_step.op();
  const bool reads_variable = op.type() == "Identity" && op.inputs()[0].op().type() == "VariableV2";
  return reads_variable ? op.inputs()[0].op().name() : op.name();
}

std::string rate_tag(const Output& global_step) {
  return step_name(global_step) + "/sec";
}

}  // namespace longhaul
