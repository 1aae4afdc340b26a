#pragma once

#include <memory>
#include <string>

#include "longhaul/events/file_writer.h"
#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/hooks/session_run_hook.h"
#include "longhaul/train/tenure/chief_tenure.h"
#include "longhaul/train/tenure/run_progress.h"

namespace longhaul {

struct JournalHookOptions {
  std::shared_ptr<ChiefTenure> tenure{};  // whose journal it is
  std::string output_dir{};               // whose events get the goodput, every two minutes; empty: none
  Coordinator coordinator{};              // whose stop is recorded; its clock measures all times
  FileSystem* files = &FileSystem::real();
};

// The counterpart of JournalService for monitored sessions, on the thread that runs the session. Records progress
// (RunProgress) and a requested stop in the journal. The tenure opens the journal, and closes it after everything has
// ended, when the outcome is known. Place this hook after the one that saves.
class JournalHook : public SessionRunHook {
 public:
  explicit JournalHook(JournalHookOptions options) : options_(std::move(options)) {}

  void begin(Graph& graph) override;  // FailedPreconditionError: the graph has no global step
  void after_create_session(Session& session, const Coordinator& coord) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;
  // This session is lost, and another one follows: records how far it has come, as far as that can be known.
  void interrupted(Session& session);

 private:
  Seconds now() const { return options_.coordinator.clock().now(); }

  const JournalHookOptions options_;
  HookStep step_;
  std::unique_ptr<RunProgress> progress_;  // of the run, once it has begun
  bool is_stopping_ = false;
};

}  // namespace longhaul
