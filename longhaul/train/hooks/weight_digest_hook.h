#pragma once

#include <memory>
#include <optional>
#include <string>

#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/hooks/session_run_hook.h"
#include "longhaul/train/reporting/weight_digest.h"

namespace longhaul {

struct WeightDigestHookOptions {
  int64_t every_n_steps = 100;
  std::string output_dir{};                      // its event files get the digests
  std::shared_ptr<FileWriter> summary_writer{};  // nullptr: output_dir's
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

// Writes a digest of all variables (train/reporting/weight_digest.h) after each step whose number is a multiple of
// `every_n_steps`, provided that each run makes one step. Two training runs, or the parts of an interrupted one, can
// then be compared step by step.
class WeightDigestHook : public SessionRunHook {
 public:
  // InvalidArgumentError: every_n_steps is not above 0; neither output_dir nor summary_writer is given.
  explicit WeightDigestHook(WeightDigestHookOptions options);

  // FailedPreconditionError: the graph has no global step. Errors of the file system: output_dir cannot be made.
  void begin(Graph& graph) override;
  void after_create_session(Session& session, const Coordinator& coord) override;
  const SessionRunArgs* before_run(SessionRunContext& context) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;
  void end(Session& session) override;
  void end_before(Session& session, const Deadline* deadline) override;

 private:
  const WeightDigestHookOptions options_;
  HookStep step_;
  std::optional<int64_t> last_;  // the step of the last digest, or the first one seen
  std::shared_ptr<FileWriter> writer_;
  const Deadline* deadline_ = nullptr;  // of the end
  std::unique_ptr<WeightDigests> digests_;
};

}  // namespace longhaul
