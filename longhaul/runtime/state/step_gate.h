#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "longhaul/base/clock.h"

namespace longhaul {

// The gate between training steps and snapshots. Steps are inside while they write variables, possibly several at once;
// a snapshot is taken when none is inside: it shuts the door, and the last step to leave runs it, or the caller if no
// step was inside.
//
//   step:      enter --> write variables --> leave      (steps inside never block: no waiting, no files)
//   snapshot:  shut the door --> all have left --> take --> open the door
//
// Any thread may call any method; a thread inside must not ask for a snapshot.
class StepGate {
 public:
  explicit StepGate(Clock& clock = Clock::real()) : clock_(clock) {}

  // DeadlineExceededError: the door stayed shut until `deadline`, on the gate's clock; 0: none.
  void enter(Seconds deadline = Seconds{0}) EXCLUDES(mutex_);
  void leave() EXCLUDES(mutex_);

  static constexpr Seconds kLongestStep{24 * 3600.0};
  static constexpr Seconds kWarnAfter{60};

  // Runs `take`, which must be short and must not throw, at a moment when no step is inside. It runs on this thread or
  // on one that leaves. A step may stay inside for long, as those of a bound program do, which compute there: the log
  // says so after each `warn_after`. DeadlineExceededError: one stayed longer than `timeout`.
  void snapshot(const std::function<void()>& take, Seconds timeout = kLongestStep, Seconds warn_after = kWarnAfter)
      EXCLUDES(mutex_);

  // How long this thread's last snapshot waited without stalling a step: until a step reached the shut door, or until
  // it was taken.
  static Seconds last_wait();

  // Whether a snapshot waits for steps to leave.
  bool is_shut() EXCLUDES(mutex_);

 private:
  struct Waiting {
    const std::function<void()>* take;
    bool taken = false;
    std::optional<Seconds> alone_until;  // when it first stalled a step, or was taken
  };
  void hold_up() REQUIRES(mutex_);
  bool take_or_ask(Waiting* waiting) EXCLUDES(mutex_);  // true: taken
  bool is_taken_by(Waiting* waiting, Seconds until) EXCLUDES(mutex_);
  bool withdraw(Waiting* waiting) EXCLUDES(mutex_);  // false: it was taken after all
  void take_waiting() REQUIRES(mutex_);

  Clock& clock_;
  Mutex mutex_;
  CondVar changed_;
  int inside_ GUARDED_BY(mutex_) = 0;
  int outside_ GUARDED_BY(mutex_) = 0;  // steps that wait for the door
  std::vector<Waiting*> waiting_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
