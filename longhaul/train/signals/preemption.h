#pragma once

#include <atomic>
#include <csignal>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"
#include "longhaul/train/coordination/coordinator.h"
#include "longhaul/train/signals/preemption_grace.h"
#include "longhaul/train/signals/stop_signals.h"

namespace longhaul {

inline constexpr int kPreemptedStatus = 75;  // EX_TEMPFAIL of sysexits.h: start me again

struct PreemptionOptions {
  // The program is to end, and to be started again: SIGTERM, SIGHUP, SIGUSR1.
  std::vector<int> stop_signals = signals_for({SignalUse::kTerminate, SignalUse::kHangUp, SignalUse::kWarn});
  // It is to end: no time presses, and exit_status() is none of theirs. SIGINT.
  std::vector<int> interrupt_signals = signals_for({SignalUse::kInterrupt});
  // A checkpoint is to be taken, and the training goes on: SIGUSR2.
  std::vector<int> save_signals = signals_for({SignalUse::kSave});
  std::optional<Seconds> grace;  // from a stop signal until the kill; absent: PreemptionGrace
  int exit_status = kPreemptedStatus;
  Clock* clock = &Clock::real();
};

// What schedulers do to a training: they end it by a signal, kill it some time later, and start it again by its exit
// status. While this lives,
//   - a stop signal ends the trainings that it was given to after the step under way, with a checkpoint of that step;
//   - that checkpoint is left out if it does not fit what is left of the grace period, as long as the last one took: a
//     checkpoint that was being written is finished then, and the log says which steps are lost (final_checkpoint.h);
//   - a save signal has the training take a checkpoint; those that come while one is awaited count once;
//   - another stop signal ends the process at once, by the signal's default action (StopSignals): what is committed is
//     whole, and what was not is removed by the next start.
// It is for the chief; a training that takes no checkpoints only stops.
//
//   Preemption preemption;
//   Supervisor sv({.graph = &graph, .logdir = "runs/demo", .chief = {.preemption = &preemption}});
//   sv.managed_session(...);                  // or monitored_training_session({..., .chief = ...}, ...)
//   return preemption.exit_status();          // 75 if a stop signal came, else 0
//
// It outlives the trainings that it was given to. One in a process, as StopSignals: FailedPreconditionError otherwise.
// Any thread.
class Preemption {
 public:
  // InvalidArgumentError: see PreemptionGrace.
  explicit Preemption(PreemptionOptions options = {});
  Preemption(const Preemption&) = delete;
  Preemption& operator=(const Preemption&) = delete;

  // The status for the program to end with: the options' if it is preempted, else `otherwise`.
  int exit_status(int otherwise = 0) const { return is_preempted() ? options_.exit_status : otherwise; }
  bool is_preempted() const { return deadline_.load() != kNever; }

  // As if a stop signal had come: for notices that come otherwise, such as a cloud's. Of several periods that are under
  // way, the one that ends first counts.
  void preempt(std::optional<Seconds> grace = std::nullopt);
  void request_save() { save_wanted_ = true; }  // as if a save signal had

  // What is left of the grace period; negative: it is over. nullopt: not preempted.
  std::optional<Seconds> time_left() const;

  // For trainings. Whether a checkpoint was asked for since this was last called; it costs no lock.
  bool take_save_request() { return save_wanted_.load(std::memory_order_relaxed) && save_wanted_.exchange(false); }

  // Requests a stop of `coord` whenever one is wanted here, now or later, also again if it is cleared, for as long as
  // the caller keeps what is returned. A stop that came already is requested before it returns.
  std::shared_ptr<const Coordinator> attach(const Coordinator& coord);

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  SignalHandling handling();
  void handle(int signal);
  void end_in(const PreemptionGrace::Period& period, int signal);  // 0: no signal
  void stop();
  void stop_all();

  const PreemptionOptions options_;
  const PreemptionGrace grace_;
  std::atomic<double> deadline_{kNever};  // on the clock
  std::atomic<bool> save_wanted_{false};

  Mutex mutex_;
  bool is_stopping_ GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<const Coordinator>> coordinators_ GUARDED_BY(mutex_);

  const StopSignals signals_;  // the last member: its thread uses the others
};

}  // namespace longhaul
