#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "longhaul/events/file_writer.h"
#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/hooks/session_run_hook.h"
#include "longhaul/train/tenure/chief_tenure.h"

namespace longhaul {

struct JournalHookOptions {
  std::shared_ptr<ChiefTenure> tenure;  // whose journal it is
  std::string output_dir;               // whose events get the goodput, every two minutes; empty: none do
  Coordinator coordinator{};            // whose stop is noted; its clock measures all times
  FileSystem* files = &FileSystem::real();
};

// For monitored sessions what JournalService is for a Supervisor's, on the thread that runs the session: notes in the
// journal the first step, every five seconds how far the training has come, and that it is to stop. The tenure opens
// the journal, and closes it when all has ended: only then is it known how. It comes after the hook that saves.
class JournalHook : public SessionRunHook {
 public:
  explicit JournalHook(JournalHookOptions options) : options_(std::move(options)) {}

  void begin(Graph& graph) override;  // FailedPreconditionError: the graph has no global step
  void after_create_session(Session& session, const Coordinator& coord) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;

 private:
  RunJournal& journal() const { return *options_.tenure->journal(); }
  Seconds now() const { return options_.coordinator.clock().now(); }
  void look_for_first_step(Session& session);
  void mark(int64_t step);

  const JournalHookOptions options_;
  HookStep step_;
  std::shared_ptr<FileWriter> writer_;  // nullptr: none
  int64_t first_step_ = 0;
  bool is_training_ = false, is_stopping_ = false;
  Seconds next_mark_{0}, next_goodput_{0};
};

}  // namespace longhaul
