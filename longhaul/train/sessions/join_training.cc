#include "longhaul/train/sessions/join_training.h"

#include "longhaul/ops/state_ops.h"
#include "longhaul/session/capabilities.h"
#include "longhaul/session/training_joining.h"

namespace longhaul {

void join_training(Session& session) {
  TrainingJoining* const joining = session.capabilities().training_joining;
  if (joining == nullptr) return;
  const std::optional<Variable> step = ops::get_global_step(session.graph());
  joining->join_training(step ? session.run(*step).to_int64() : 0);
}

}  // namespace longhaul
