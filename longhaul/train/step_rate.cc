#include "longhaul/train/step_rate.h"

#include <limits>

#include "longhaul/train/graph_defaults.h"

namespace longhaul {

double steps_per_second(int64_t steps, Seconds elapsed) {
  if (elapsed > Seconds{0}) return static_cast<double>(steps) / elapsed.count();
  return steps == 0 ? 0 : std::numeric_limits<double>::infinity();
}

std::string rate_tag(const Output& global_step) {
  return step_name(global_step) + "/sec";
}

}  // namespace longhaul
