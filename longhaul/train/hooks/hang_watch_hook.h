#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "longhaul/events/file_writer.h"
#include "longhaul/train/hangs/hang_watch.h"
#include "longhaul/train/hooks/session_run_hook.h"
#include "longhaul/train/tenure/chief_tenure.h"

namespace longhaul {

struct HangWatchHookOptions {
  HangOptions hang{};
  std::shared_ptr<ChiefTenure> tenure{};  // whose journal and status page get the hangs; nullptr: none
  std::string output_dir{};               // whose events get them; empty: none
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

// Watches whether the runs of a monitored session go on (HangWatch): while it has a session, and until its end begins.
// Each run counts, whether or not it makes a step. monitored_session_options() puts one into each session; hooks that
// evaluate for minutes have a NoStepsExpected meanwhile.
class HangWatchHook : public SessionRunHook {
 public:
  // InvalidArgumentError: check_hang().
  explicit HangWatchHook(HangWatchHookOptions options = {});

  void begin(Graph& graph) override;  // Errors of the file system: output_dir cannot be made
  void after_create_session(Session& session, const Coordinator& coord) override;
  void after_run(SessionRunContext&, const SessionRunValues&) override {
    runs_->fetch_add(1, std::memory_order_relaxed);
  }
  void end(Session&) override { end_watch(); }

  // The session is lost, or training ends, whether or not well.
  void end_watch() { watch_.reset(); }

 private:
  const HangWatchHookOptions options_;
  const std::shared_ptr<std::atomic<uint64_t>> runs_ = std::make_shared<std::atomic<uint64_t>>(0);
  std::shared_ptr<FileWriter> writer_;
  std::unique_ptr<HangWatch> watch_;  // null: there is no session
};

}  // namespace longhaul
