#include "longhaul/train/sessions/join_training.h"

#include "longhaul/ops/state_ops.h"
#include "longhaul/session/capabilities.h"
#include "longhaul/session/training_joining.h"

namespace longhaul {

std::optional<int64_t> join_training(Session& session) {
  TrainingJoining* const joining = session.capabilities().training_joining;
  if (joining == nullptr) return std::nullopt;
  const std::optional<Variable> global_step = ops::get_global_step(session.graph());
  const int64_t step = global_step ? session.run(*global_step).item<int64_t>() : 0;
  joining->join_training(step);
  return step;
}

}  // namespace longhaul
