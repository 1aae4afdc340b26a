#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "longhaul/events/file_writer.h"
#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/hooks/second_or_step_timer.h"
#include "longhaul/train/hooks/session_run_hook.h"

namespace longhaul {

struct ProfilerHookOptions {
  std::optional<int64_t> save_steps{};  // exactly one of the two
  std::optional<Seconds> save_secs{};
  std::string output_dir{};                      // empty: the working directory
  std::shared_ptr<FileWriter> summary_writer{};  // gets the run metadata; nullptr: output_dir's
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

// Traces a run at the given interval, never the first. The time that each operation took goes to
// output_dir/timeline-<step>.json, which chrome://tracing and https://ui.perfetto.dev open, and to the event file, as
// "step_<step>". A step that is repeated after a lost session replaces its file, and is "step_<step>_2" in the events.
// A failure to write a trace is logged, and training continues.
class ProfilerHook : public SessionRunHook {
 public:
  explicit ProfilerHook(ProfilerHookOptions options);  // InvalidArgumentError: not exactly one of the two

  // FailedPreconditionError: the graph has no global step. Errors of the file system: output_dir cannot be made.
  void begin(Graph& graph) override;
  void after_create_session(Session& session, const Coordinator& coord) override;
  const SessionRunArgs* before_run(SessionRunContext& context) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;
  void end(Session& session) override;
  void end_before(Session& session, const Deadline* deadline) override;

 private:
  void write(const proto::RunMetadata& metadata, int64_t step);
  std::string new_tag(int64_t step);

  const ProfilerHookOptions options_;
  const std::string directory_;
  SecondOrStepTimer timer_;
  std::shared_ptr<FileWriter> writer_;
  const Deadline* deadline_ = nullptr;  // of the end
  HookStep step_;
  SessionRunArgs traced_;                // the global step, with tracing options
  std::optional<int64_t> next_step_;     // the step that the next run will probably make; nullopt: no run yet
  std::map<int64_t, int> times_traced_;  // by step
  bool due_ = false;
};

}  // namespace longhaul
