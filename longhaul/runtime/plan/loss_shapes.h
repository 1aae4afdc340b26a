#pragma once

#include <optional>
#include <string>

#include "longhaul/runtime/plan/instruction.h"

namespace longhaul {

// The operation whose gradient `op` computes a part of, by the names that ops::gradients() gives: "loss" for
// "gradients/loss_grad/mse_loss_backward". Invalid: it is not part of a gradient.
Operation forward_of(const Operation& op);

// An error in an operation, with its name; for a part of a gradient, with the name and inputs of the differentiated
// operation, since that is the one in the program.
std::string operation_error_text(const Operation& op, const std::string& what);

// A loss that compares a prediction with a target element by element, and whose shapes are unknown when the graph is
// built, or known to be equal. nullopt: another operation, or one that broadcasts according to its inputs' shapes.
struct LossOfPair {
  Operation loss;
  Output prediction, target;
};
std::optional<LossOfPair> loss_of_pair(const Operation& op);

// Refuses a prediction and a target of different shapes, which libtorch would broadcast to a different loss, or refuse
// in the gradient. A training step may compute only the gradient, so this check precedes whichever of the two comes
// first.
class LossShapeCheck : public Instruction {
 public:
  LossShapeCheck(const LossOfPair& pair, int prediction, int target, int first_output)
      : Instruction(pair.loss, first_output), pair_(pair), prediction_(prediction), target_(target) {}
  void run(Frame& frame, SessionState&) const override;
  bool is_traced() const override { return false; }

 private:
  const LossOfPair pair_;
  const int prediction_, target_;  // slots
};

}  // namespace longhaul
