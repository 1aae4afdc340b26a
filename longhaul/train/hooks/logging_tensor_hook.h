#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "longhaul/train/hooks/second_or_step_timer.h"
#include "longhaul/train/hooks/session_run_hook.h"
#include "longhaul/train/reporting/logged_tensor.h"

namespace longhaul {

struct LoggingTensorHookOptions {
  std::vector<LoggedTensor> tensors{};
  std::optional<int64_t> every_n_iter{};  // exactly one of the two, or none with at_end
  std::optional<Seconds> every_n_secs{};
  bool at_end = false;  // whether to log also when training has ended well
  // Formats the line from the values by tag. Empty: "loss = 0.25, rate = 0.1 (1.234 sec)", with the time since the
  // previous line.
  std::function<std::string(const std::map<std::string, Tensor>&)> formatter{};
  Clock* clock = &Clock::real();
};

// Logs the values of tensors (log_info): in the first run, then at the given interval. Other runs do not fetch them.
class LoggingTensorHook : public SessionRunHook {
 public:
  // InvalidArgumentError: no tensors; neither or both of every_n_iter and every_n_secs; "invalid every_n_iter", if it
  // is not positive.
  explicit LoggingTensorHook(LoggingTensorHookOptions options);

  void begin(Graph& graph) override;  // NotFoundError, InvalidArgumentError: the graph has no such tensor
  const SessionRunArgs* before_run(SessionRunContext& context) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;
  void end(Session& session) override;

 private:
  void log(std::span<const Tensor> values);

  const LoggingTensorHookOptions options_;
  std::optional<SecondOrStepTimer> timer_;  // absent: logs only at the end
  SessionRunArgs args_;                     // the tensors
  int64_t runs_ = 0;
  bool due_ = false;
};

}  // namespace longhaul
