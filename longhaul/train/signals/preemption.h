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

inline constexpr int kPreemptedStatus = 75;  // EX_TEMPFAIL of sysexits.h: asks for a restart

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

// Handles preemption by a scheduler: the scheduler stops a program with a signal, kills it some time later, and
// restarts it depending on its exit status. While this object exists,
//   - a stop signal ends the training runs that use the object: each finishes its current step and takes a checkpoint
//     of it;
//   - this checkpoint is skipped if the last save took longer than the rest of the grace period; a checkpoint that is
//     already being written is still finished, and the log says which steps are lost (final_checkpoint.h);
//   - a save signal makes the training runs take a checkpoint, and has no effect while one is already requested;
//   - a second stop signal ends the process immediately, by the signal's default action (StopSignals). Committed
//     checkpoints are intact, and the next start removes uncommitted files.
// Use it in the chief. A training run without checkpoints just stops.
//
//   Preemption preemption;
//   Supervisor sv({.graph = &graph, .logdir = "runs/demo", .chief = {.preemption = &preemption}});
//   sv.managed_session(train);                // or monitored_training_session() with the same .chief
//   return preemption.exit_status();          // 75 if a stop signal came, else 0
//
// It must outlive the training runs that use it. A process can have only one Preemption or StopSignals at a time: a
// second one throws FailedPreconditionError. Any thread may call.
class Preemption {
 public:
  // InvalidArgumentError: see PreemptionGrace.
  explicit Preemption(PreemptionOptions options = {});
  // Warns if the program was preempted, and nobody has asked for its exit status.
  ~Preemption();
  Preemption(const Preemption&) = delete;
  Preemption& operator=(const Preemption&) = delete;

  // The status with which the program should exit: the options' exit_status if the program was preempted, else
  // `otherwise`.
  int exit_status(int otherwise = 0) const;
  bool is_preempted() const { return deadline_.is_set(); }

  // Acts as if a stop signal had arrived: for notices from other sources, such as a cloud's metadata server. If several
  // grace periods overlap, the one that ends first applies.
  void preempt(std::optional<Seconds> grace = std::nullopt);
  void request_save();  // as if a save signal had arrived; neither this nor preempt() may be called in a signal handler

  // The rest of the grace period, negative once it is over; nullopt: not preempted.
  std::optional<Seconds> time_left() const { return deadline_.left(); }
  // The end of the grace period, for waits that a preemption cuts short.
  const Deadline& deadline() const { return deadline_; }

  // Whether a checkpoint was requested since the last call. For training loops: it takes no lock.
  bool take_save_request() { return save_wanted_.load(std::memory_order_relaxed) && save_wanted_.exchange(false); }

  // For threads that wait for a request: whether there is one, and a way to be notified. notify_of_saves() calls
  // Coordinator::notify() of `coord` at each request, as long as the caller keeps the returned object.
  bool has_save_request() const { return save_wanted_; }
  std::shared_ptr<const Coordinator> notify_of_saves(const Coordinator& coord);

  // A preemption requests a stop of `coord`, as long as the caller keeps the returned object; clear_stop() does not
  // clear that stop. If the program is already preempted, the stop is requested before this returns. If no attached
  // training run takes checkpoints, the log says so when the program is preempted.
  std::shared_ptr<const Coordinator> attach(const Coordinator& coord, bool takes_checkpoints = true);

  // For the start of a training run that was given no Preemption: warns if the program has one that no run uses.
  static void warn_of_unused();

 private:
  using Coordinators = std::vector<std::weak_ptr<const Coordinator>>;

  SignalHandling handling();
  void handle(int signal);
  void end_in(const PreemptionGrace::Period& period, int signal);  // 0: no signal
  bool has_attached();
  bool saves_nothing();
  std::shared_ptr<const Coordinator> add(const Coordinator& coord, Coordinators& all) REQUIRES(mutex_);
  void stop();
  void stop_all();

  const PreemptionOptions options_;
  const PreemptionGrace grace_;
  Deadline deadline_{*options_.clock};  // set: preempted
  std::atomic<bool> save_wanted_{false};
  mutable std::atomic<bool> status_was_asked_{false};

  Mutex mutex_;
  bool is_stopping_ GUARDED_BY(mutex_) = false;
  Coordinators coordinators_ GUARDED_BY(mutex_);
  Coordinators without_checkpoints_ GUARDED_BY(mutex_);  // some of them
  Coordinators waiting_for_saves_ GUARDED_BY(mutex_);

  const StopSignals signals_;  // the last member: its thread uses the others
};

}  // namespace longhaul
