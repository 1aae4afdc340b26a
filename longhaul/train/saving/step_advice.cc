#include "longhaul/train/saving/step_advice.h"

#include "longhaul/ops/external_variable.h"

namespace longhaul {

std::string step_advice(const Graph& graph, const std::string& otherwise) {
  if (!ops::has_program_step(graph)) return otherwise;
  return "run TorchTraining::train_op for each step, instead of calling the step function, and leave "
         "TorchTrainingOptions::counts_global_step true";
}

}  // namespace longhaul
