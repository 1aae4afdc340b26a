#pragma once

#include <memory>
#include <optional>
#include <string>

#include "longhaul/events/file_writer.h"
#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/hooks/second_or_step_timer.h"
#include "longhaul/train/hooks/session_run_hook.h"

namespace longhaul {

struct StepCounterHookOptions {
  std::optional<int64_t> every_n_steps = 100;  // exactly one of the two
  std::optional<Seconds> every_n_secs{};
  std::string output_dir{};                      // its event files get the rate
  std::shared_ptr<FileWriter> summary_writer{};  // nullptr: output_dir's; without both, the rate is only logged
  int64_t steps_per_run = 1;                     // by which one run increases the global step
  // Whether this hook writes the start of a run to the event file (SessionLog START). For sessions without a
  // SummarySaverHook, which always does.
  bool write_start = false;
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

// Writes and logs the number of steps per second, as "global_step/sec".
//
// Warns if runs do not increase the global step: in the tenth run of a session that has made no step, and again after
// ten times as many, five times at most. A program may make runs that only read.
class StepCounterHook : public SessionRunHook {
 public:
  // InvalidArgumentError: not exactly one of every_n_steps and every_n_secs.
  explicit StepCounterHook(StepCounterHookOptions options = {});

  // FailedPreconditionError: the graph has no global step. Errors of the file system: output_dir cannot be made.
  void begin(Graph& graph) override;
  void after_create_session(Session& session, const Coordinator& coord) override;
  const SessionRunArgs* before_run(SessionRunContext& context) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;
  void end(Session& session) override;
  void end_before(Session& session, const Deadline* deadline) override;

 private:
  void count(int64_t step);
  void check_progress(const Graph& graph, int64_t before);

  const StepCounterHookOptions options_;
  SecondOrStepTimer timer_;
  std::shared_ptr<FileWriter> writer_;
  const Deadline* deadline_ = nullptr;  // of the end
  std::string tag_;
  HookStep step_;
  std::optional<int64_t> first_step_;  // at which the session's first run began
  bool has_moved_ = false;
  int64_t runs_ = 0, runs_to_warn_ = kFirstWarning;
  int warnings_ = 0;

  static constexpr int64_t kFirstWarning = 10;
};

}  // namespace longhaul
