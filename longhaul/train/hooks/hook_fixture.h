#pragma once

#include "longhaul/events/file_writer.h"
#include "longhaul/train/hooks/session_run_hook.h"
#include "longhaul/train/reporting/event_lines_fixture.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {

// A graph with a global step, and the runs of a scripted session on it, with a hook that is driven over them as
// a MonitoredSession does it, or in parts.
class HookTest : public ::testing::Test {
 protected:
  HookTest() { set_step(0); }

  void set_step(int64_t value) {
    session->run(step.initializer(), {{step.initial_value(), Tensor::scalar<int64_t>(value)}});
  }
  int64_t step_now() { return session->run(step).item<int64_t>(); }

  void begin(SessionRunHook& hook) { hook.begin(graph); }
  void start(SessionRunHook& hook) {
    hook.begin(graph);
    hook.after_create_session(*session, coord);
  }

  // A run of the caller's `fetch` with the hook; whether the hook asks for a stop.
  bool run(SessionRunHook& hook, const Fetch& fetch) {
    const SessionRunArgs callers{.fetches = {fetch}};
    SessionRunContext context(*session, callers);
    static const SessionRunArgs nothing;
    const SessionRunArgs* asked = hook.before_run(context);
    const SessionRunArgs& args = asked != nullptr ? *asked : nothing;
    std::vector<Fetch> fetches{fetch};
    fetches.insert(fetches.end(), args.fetches.begin(), args.fetches.end());
    fetched = args.fetches.size();
    proto::RunMetadata metadata;
    const std::vector<Tensor> values = session->run(fetches, args.feeds, args.options, &metadata);
    const bool traced = args.options.trace_level != TraceLevel::kNoTrace;
    hook.after_run(context, {std::span(values).subspan(1), &args.options, traced ? &metadata : nullptr});
    return context.stop_requested();
  }
  // A training step, of `by` steps or of one.
  bool train(SessionRunHook& hook, int64_t by = 1) { return run(hook, adding(by)); }
  Operation adding(int64_t by) {
    Operation& op = adding_[by];
    if (!op.valid()) op = ops::assign_add(root, step, ops::constant(root, by)).op();
    return op;
  }

  // What is in the event files, the versions left out.
  std::vector<std::string> events() {
    writer->flush();
    std::vector<std::string> lines = describe(events_in_directory(directory.path()));
    std::erase(lines, "version brain.Event:2");
    return lines;
  }

  testing::TemporaryDirectory directory;
  testing::FakeClock clock;
  Coordinator coord{{.clock = &clock}};
  std::shared_ptr<FileWriter> writer =
      std::make_shared<FileWriter>(directory.path(), FileWriterOptions{.clock = &clock});
  Graph graph;
  Scope root{graph};
  Variable step = ops::create_global_step(root);
  std::unique_ptr<testing::ScriptedSession> session = make_scripted_session(graph);
  size_t fetched = 0;  // by the hook, in the last run

 private:
  std::map<int64_t, Operation> adding_;
};

}  // namespace longhaul
