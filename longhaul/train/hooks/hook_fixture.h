#pragma once

#include "longhaul/events/file_writer.h"
#include "longhaul/testing/threads_end_fixture.h"
#include "longhaul/train/hooks/session_run_hook.h"
#include "longhaul/train/reporting/event_lines_fixture.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {

// A graph with a global step, and the runs of a scripted session on it, with a hook that is driven over them as
// a MonitoredSession does it, or in parts.
class HookTest : public ::testing::Test {
 protected:
  HookTest();
  ~HookTest() override;

  void set_step(int64_t value);
  int64_t step_now();

  void begin(SessionRunHook& hook);
  void start(SessionRunHook& hook);

  // A run of the caller's `fetch` with the hook; whether the hook asks for a stop.
  bool run(SessionRunHook& hook, const Fetch& fetch);
  // A training step, of `by` steps or of one.
  bool train(SessionRunHook& hook, int64_t by = 1);
  Operation adding(int64_t by);

  // What is in the event files, the versions left out.
  std::vector<std::string> events();

  testing::TemporaryDirectory directory;
  testing::FakeClock clock;
  const ThreadsEnd threads_end;
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
