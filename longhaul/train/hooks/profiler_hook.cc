#include "longhaul/train/hooks/profiler_hook.h"

#include <fmt/format.h>

#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/io/files/canonical_directory.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/reporting/run_events.h"
#include "longhaul/train/reporting/timeline.h"

namespace longhaul {

ProfilerHook::ProfilerHook(ProfilerHookOptions options)
    : options_(std::move(options)),
      directory_(absolute_directory(options_.output_dir.empty() ? "." : options_.output_dir)),
      timer_({options_.save_secs, options_.save_steps}, options_.clock, "ProfilerHook") {}

void ProfilerHook::begin(Graph& graph) {
  step_.find(graph, "ProfilerHook");
  traced_ = step_.args();
  traced_.options.trace_level = TraceLevel::kFullTrace;
  check_directory_owner(*options_.files, join_path(directory_, "events"));
  options_.files->make_directories(directory_);
  writer_ = hook_writer(options_.summary_writer, directory_, options_.files, options_.clock);
}

void ProfilerHook::after_create_session(Session&, const Coordinator&) {
  next_step_.reset();
}

const SessionRunArgs* ProfilerHook::before_run(SessionRunContext&) {
  due_ = next_step_ && timer_.should_trigger_for_step(*next_step_);
  return due_ ? &traced_ : &step_.args();
}

void ProfilerHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  int64_t step = HookStep::before_the_run(values);
  if (!next_step_) timer_.update_last_triggered_step(step);
  ++step;
  if (due_) {
    step = step_.now(context.session());
    timer_.update_last_triggered_step(step);
    write(*values.run_metadata, step);
  }
  next_step_ = step + 1;
}

// An event file takes each tag once.
std::string ProfilerHook::new_tag(int64_t step) {
  const int times = ++times_traced_[step];
  return times == 1 ? fmt::format("step_{}", step) : fmt::format("step_{}_{}", step, times);
}

void ProfilerHook::write(const proto::RunMetadata& metadata, int64_t step) {
  const std::string path = join_path(directory_, fmt::format("timeline-{}.json", step));
  log_info("Saving timeline for {} into '{}'.", step, path);
  try {
    check_directory_owner(*options_.files, path);
    write_file_atomically(*options_.files, path, generate_chrome_trace_format(metadata.step_stats()));
    writer_->add_run_metadata(metadata, new_tag(step), step);
  } catch (const Error& error) {
    log_error("the trace of step {} is incomplete: {}", step, error.what());
  }
}

void ProfilerHook::end(Session&) {
  flush_or_log(*writer_, std::exchange(deadline_, nullptr));
}

void ProfilerHook::end_before(Session& session, const Deadline* deadline) {
  deadline_ = deadline;
  end(session);
}

}  // namespace longhaul
