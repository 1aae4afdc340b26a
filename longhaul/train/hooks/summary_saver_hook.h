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
  std::string output_dir{};                      // whose event files get the summaries
  std::shared_ptr<FileWriter> summary_writer{};  // nullptr: output_dir's
  std::vector<Output> summary_op{};              // exactly one of the two; each output becomes its own event
  std::shared_ptr<const Scaffold> scaffold{};    // whose summary_op is written, if any
  bool write_start = true;  // false: another hook of the session that writes to the same directory does it
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

// Writes summaries, computed in the run in which they are due: the first of each session, then at the given interval.
// The first run also writes the starting step (SessionLog START), so that readers drop events of later steps, written
// before the model was restored. Of several hooks that write to one directory only the first should do so: a START
// makes readers drop what the others wrote for that step.
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

 private:
  const SessionRunArgs& with_summaries();
  void write(std::span<const Tensor> summaries, int64_t step);

  const SummarySaverHookOptions options_;
  SecondOrStepTimer timer_;
  std::shared_ptr<FileWriter> writer_;
  HookStep step_;
  SessionRunArgs step_and_summaries_;  // empty until the first is due
  std::optional<int64_t> next_step_;   // that the next run probably makes; nullopt: no run yet
  bool due_ = false;
};

}  // namespace longhaul
