#pragma once

#include <optional>
#include <string>

#include "longhaul/runtime/plan/instruction.h"

namespace longhaul {

// The operation whose gradient an operation computes a part of, by the names that ops::gradients() gives: of
// "gradients/loss_grad/mse_loss_backward" it is "loss". Invalid: it is no part of a gradient.
Operation forward_of(const Operation& op);

// What went wrong in an operation, with its name; for a part of a gradient, with that of the operation that was
// differentiated and what it takes, since that is what the program has.
std::string operation_error_text(const Operation& op, const std::string& what);

// A loss that compares a prediction with a target, number by number, and whose shapes are not known when the graph is
// built, or are known and the same. nullopt: another operation, or one that broadcasts as its inputs' shapes say.
struct LossOfPair {
  Operation loss;
  Output prediction, target;
};
std::optional<LossOfPair> loss_of_pair(const Operation& op);

// Refuses a prediction and a target of different shapes, which libtorch would broadcast to a loss of something else, or
// refuse in the gradient. A training step computes the gradient alone, so this comes before the first of both.
class LossShapeCheck : public Instruction {
 public:
  LossShapeCheck(const LossOfPair& pair, int prediction, int target, int first_output)
      : Instruction(pair.loss, first_output), pair_(pair), prediction_(prediction), target_(target) {}
  void run(Frame& frame, SessionResources&) const override;
  bool is_traced() const override { return false; }

 private:
  const LossOfPair pair_;
  const int prediction_, target_;  // slots
};

}  // namespace longhaul
