#include "longhaul/train/saving/step_advice.h"

#include "longhaul/ops/external_variable.h"
#include "longhaul/ops/program_loop.h"

namespace longhaul {

std::string step_advice(const Graph& graph, const std::string& otherwise) {
  if (!ops::has_program_step(graph)) return otherwise;
  if (ops::has_program_loop(graph)) {
    return "make the steps in the Trainer's loops, for (int64_t step : trainer.steps(n)), or trainer.batches(*loader) "
           "in trainer.epochs(n), and change the module only there";
  }
  return "run TorchTraining::train_op for each step, instead of calling the step function, and leave "
         "TorchTrainingOptions::counts_global_step true";
}

}  // namespace longhaul
