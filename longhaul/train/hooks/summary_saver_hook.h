#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "longhaul/events/file_writer.h"
#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/hooks/second_or_step_timer.h"
#include "longhaul/train/hooks/session_run_hook.h"

namespace longhaul {

class Scaffold;

struct SummarySaverHookOptions {
  std::optional<int64_t> save_steps{};  // exactly one of the two
  std::optional<Seconds> save_secs{};
  std::string output_dir{};                      // its event files get the summaries
  std::shared_ptr<FileWriter> summary_writer{};  // nullptr: output_dir's
  std::vector<Output> summary_op{};              // exactly one of the two; each output becomes its own event
  std::shared_ptr<const Scaffold> scaffold{};    // its summary_op is written, if it has one
  bool write_start = true;  // whether to write the START event; false: another hook of the session does
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

// Writes summaries in the first run of each session, then at the given interval. They are computed in the run in which
// they are due. The first run also writes the starting step (SessionLog START), so that readers drop events of later
// steps that were written before the model was restored. If several hooks write to one directory, only the first should
// write a START, because it makes readers drop what the others wrote for that step.
class SummarySaverHook : public SessionRunHook {
 public:
  // InvalidArgumentError: not exactly one of save_steps and save_secs, or of summary_op and scaffold; nowhere to write.
  explicit SummarySaverHook(SummarySaverHookOptions options);

  // FailedPreconditionError: the graph has no global step. Errors of the file system: output_dir cannot be made.
  void begin(Graph& graph) override;
  void after_create_session(Session& session, const Coordinator& coord) override;
  const SessionRunArgs* before_run(SessionRunContext& context) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;
  void end(Session& session) override;
  void end_before(Session& session, const Deadline* deadline) override;

 private:
  const SessionRunArgs& with_summaries();
  void write(std::span<const Tensor> summaries, int64_t step);

  const SummarySaverHookOptions options_;
  SecondOrStepTimer timer_;
  std::shared_ptr<FileWriter> writer_;
  const Deadline* deadline_ = nullptr;  // of the end
  HookStep step_;
  SessionRunArgs step_and_summaries_;  // empty until the first summary is due
  std::optional<int64_t> next_step_;   // the step that the next run will probably make; nullopt: no run yet
  bool due_ = false;
};

}  // namespace longhaul
