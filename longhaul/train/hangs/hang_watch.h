#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/base/thread.h"
#include "longhaul/train/hangs/hang_options.h"
#include "longhaul/train/hangs/hang_report.h"

namespace longhaul {

// The training that is watched.
struct WatchedTraining {
  // How many steps have ended. Called on the watch's thread, and must neither throw nor wait, even if the training
  // hangs.
  std::function<uint64_t()> steps;
  HangRecords records{};
  // Ends the process, for tests; empty: really.
  std::function<void(bool take_core)> end_process{};
};

// Watches whether a training makes steps, on a thread of its own, from the construction to the destruction: those who
// own it end it before they restore, initialise or take the last checkpoint. HangMeter decides; time during a
// NoStepsExpected does not count. What it finds is reported by another thread, lh-hang-report, which is left behind if
// it hangs itself, on a disk say; so the end of the process (HangOptions::kill_after) comes in any case. No report
// changes what the training does.
//
// Without a thread, since the system gives none, it watches nothing, and the log says so.
class HangWatch {
 public:
  // The clock outlives it. InvalidArgumentError: check_hang().
  HangWatch(const HangOptions& options, Clock& clock, WatchedTraining training);
  ~HangWatch();
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  // Tells others what hangs, "no step for 603 s", as of the last report; nullopt: nothing does, or the watch is over.
  // Any thread, also after that; does not wait.
  std::function<std::optional<std::string>()> teller() const;

 private:
  struct State;

  const std::shared_ptr<State> state_;
  NamedThread thread_;
};

}  // namespace longhaul
