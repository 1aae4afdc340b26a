#pragma once

#include <atomic>
#include <csignal>
#include <memory>
#include <optional>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/deadline.h"
#include "longhaul/base/mutex.h"
#include "longhaul/train/coordination/coordinator.h"
#include "longhaul/train/signals/preemption_grace.h"
#include "longhaul/train/signals/stop_signals.h"

namespace longhaul {

inline constexpr int kPreemptedStatus = 75;  // EX_TEMPFAIL of sysexits.h: please restart

struct PreemptionOptions {
  // Signals that stop the program, which will be restarted: SIGTERM, SIGHUP, SIGUSR1.
  std::vector<int> stop_signals = signals_for({SignalUse::kTerminate, SignalUse::kHangUp, SignalUse::kWarn});
  // Signals that stop the program without a deadline, and without `exit_status`: SIGINT.
  std::vector<int> interrupt_signals = signals_for({SignalUse::kInterrupt});
  // Signals that request a checkpoint, after which training continues: SIGUSR2.
  std::vector<int> save_signals = signals_for({SignalUse::kSave});
  std::optional<Seconds> grace{};  // from a stop signal until the kill; absent: PreemptionGrace
  int exit_status = kPreemptedStatus;
  Clock* clock = &Clock::real();
};

// Handles preemption by a scheduler, which stops a program with a signal, kills it some time later, and restarts it
// depending on its exit status. While this object exists,
//   - a stop signal ends the training runs that use the object: they finish the current step and take a checkpoint of
//     it;
//   - this checkpoint is skipped if the last save took longer than what is left of the grace period; a checkpoint that
//     is being written is then finished, and the log says which steps are lost (final_checkpoint.h);
//   - a save signal makes the training runs take a checkpoint; until it is taken, further save signals have no effect;
//   - another stop signal ends the process at once, by the signal's default action (StopSignals). Committed checkpoints
//     are intact, and the next start removes uncommitted files.
// It is for the chief; a training run without checkpoints just stops.
//
//   Preemption preemption;
//   Supervisor sv({.graph = &graph, .logdir = "runs/demo", .chief = {.preemption = &preemption}});
//   sv.managed_session(...);                  // or monitored_training_session({..., .chief = ...}, ...)
//   return preemption.exit_status();          // 75 if a stop signal came, else 0
//
// It must outlive the training runs that use it. A process can have only one at a time, as with StopSignals: a second
// one throws FailedPreconditionError. Any thread.
class Preemption {
 public:
  // InvalidArgumentError: see PreemptionGrace.
  explicit Preemption(PreemptionOptions options = {});
  Preemption(const Preemption&) = delete;
  Preemption& operator=(const Preemption&) = delete;

  // The status for the program to exit with: that of the options if the program was preempted, else `otherwise`.
  int exit_status(int otherwise = 0) const { return is_preempted() ? options_.exit_status : otherwise; }
  bool is_preempted() const { return deadline_.is_set(); }

  // Acts as if a stop signal had arrived: for notices from other sources, such as a cloud's metadata server. If several
  // grace periods overlap, the one that ends first applies.
  void preempt(std::optional<Seconds> grace = std::nullopt);
  void request_save();  // as if a save signal had arrived; like preempt(), not for signal handlers

  // The rest of the grace period; negative: it is over. nullopt: not preempted.
  std::optional<Seconds> time_left() const { return deadline_.left(); }
  const Deadline& deadline() const { return deadline_; }  // its end, for waits that a preemption cuts short

  // For training loops: whether a checkpoint was requested since the last call. Takes no lock.
  bool take_save_request() { return save_wanted_.load(std::memory_order_relaxed) && save_wanted_.exchange(false); }

  // For threads that wait for one: whether there is a request; and a notification of `coord` (Coordinator::notify()) at
  // each, as long as the caller keeps the returned object.
  bool has_save_request() const { return save_wanted_; }
  std::shared_ptr<const Coordinator> notify_of_saves(const Coordinator& coord);

  // While the caller keeps the returned object, a preemption, now or later, requests a stop of `coord`, which
  // clear_stop() does not clear. If the program is already preempted, the stop is requested before this returns.
  std::shared_ptr<const Coordinator> attach(const Coordinator& coord);

 private:
  using Coordinators = std::vector<std::weak_ptr<const Coordinator>>;

  SignalHandling handling();
  void handle(int signal);
  void end_in(const PreemptionGrace::Period& period, int signal);  // 0: no signal
  bool has_attached();
  std::shared_ptr<const Coordinator> add(const Coordinator& coord, Coordinators& all) REQUIRES(mutex_);
  void stop();
  void stop_all();

  const PreemptionOptions options_;
  const PreemptionGrace grace_;
  Deadline deadline_{*options_.clock};  // set: preempted
  std::atomic<bool> save_wanted_{false};

  Mutex mutex_;
  bool is_stopping_ GUARDED_BY(mutex_) = false;
  Coordinators coordinators_ GUARDED_BY(mutex_);
  Coordinators waiting_for_saves_ GUARDED_BY(mutex_);

  const StopSignals signals_;  // the last member: its thread uses the others
};

}  // namespace longhaul
