#pragma once

#include <optional>
#include <string>

#include "longhaul/base/error.h"
#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/hooks/session_run_hook.h"

namespace longhaul {

// The error with which NanTensorHook ends training. It does not count as a lost session: a restart from the last
// checkpoint would reach the same loss.
class NanLossDuringTrainingError : public FailedPreconditionError {
 public:
  using FailedPreconditionError::FailedPreconditionError;
};

struct NanTensorHookOptions {
  bool fail_on_nan_loss = true;    // false: training stops as if it had ended well
  bool let_infinity_pass = false;  // true: as in TensorFlow, for losses that recover from infinity
};

// Checks the loss of each run, a tensor with one element of any real dtype, and ends training if it is NaN or infinite.
class NanTensorHook : public SessionRunHook {
 public:
  explicit NanTensorHook(Fetch loss, NanTensorHookOptions options = {});

  void begin(Graph& graph) override;  // NotFoundError, InvalidArgumentError: the graph has no such tensor
  const SessionRunArgs* before_run(SessionRunContext& context) override;

  // NanLossDuringTrainingError "NaN loss during training", with the loss's name, its value and the step.
  // InvalidArgumentError: the loss does not have exactly one element, or its dtype is not real.
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;

 private:
  std::string describe(const SessionRunValues& values) const;

  const Fetch loss_;
  const NanTensorHookOptions options_;
  std::string loss_name_;
  SessionRunArgs args_;  // the loss, and the global step if the graph has one
};

}  // namespace longhaul
