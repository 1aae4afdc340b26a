#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
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
// A snapshot of several tasks shuts all their doors before it takes anything, and says so by an id:
//
//   shut(id) --> [commit what other tasks have committed: let_in(id, step)] --> take(id), which opens the door
//
// One id at a time keeps the door shut: a step that it lets in would otherwise pass the door of another id, whose
// snapshot does not have that step on other tasks. The door opens when the id has taken, opened or run out of its
// lease. So an owner that disappears holds up steps for a bounded time.
//
// Any thread may call any method; a thread inside must not ask for a snapshot. Within a ProgramInStep, snapshot() and
// enter() of any gate, which would wait for the end of the step, throw a FailedPreconditionError.
class StepGate {
 public:
  explicit StepGate(Clock& clock = Clock::real()) : clock_(clock) {}

  // DeadlineExceededError: the door stayed shut until `deadline`, on the gate's clock; 0: none. `step`: its number, if
  // let_in() may let it past the door; no two steps have the same.
  void enter(Seconds deadline = Seconds{0}, uint64_t step = 0) EXCLUDES(mutex_);
  void leave() EXCLUDES(mutex_);

  // For a program that makes the changes of a step itself, before the run that counts it: enters now, for this thread's
  // next enter(), which then returns at once. leave_ahead() takes it back. FailedPreconditionError: this thread is
  // ahead in a gate already.
  void enter_ahead() EXCLUDES(mutex_);
  void leave_ahead() EXCLUDES(mutex_);
  bool is_ahead() const;  // this thread

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

  enum class Door {
    kShut,      // it was open for this id, so that steps may have been made
    kRenewed,   // it was shut for this id, and is for another lease
    kAnothers,  // it is shut for another id, and is not for this one
  };
  // Keeps the door shut for this id, for at most `lease`, and waits until no step is inside. If another id keeps it
  // shut, waits for that first, for at most `wait_for_another`. DeadlineExceededError: a step stayed inside for longer
  // than `timeout`, or the lease; the id no longer shuts.
  Door shut(const std::string& id, Seconds lease, Seconds timeout, Seconds wait_for_another = Seconds{0})
      EXCLUDES(mutex_);
  // Lets a step that another task has committed past the door that the id keeps shut: whether the step waits outside
  // already, or comes later. AbortedError: the id does not, for its lease has run out.
  void let_in(const std::string& id, uint64_t step) EXCLUDES(mutex_);
  // Runs `take`, as snapshot() does, while the id keeps the door shut, then opens the door for the id. Waits for steps
  // that have entered past the door, for at most `timeout`: DeadlineExceededError. AbortedError: the id does not keep
  // the door shut, so that steps may have been made since shut().
  void take(const std::string& id, const std::function<void()>& take, Seconds timeout) EXCLUDES(mutex_);
  // The id no longer keeps the door shut. May be called again, and for an id that never did.
  void open(const std::string& id) EXCLUDES(mutex_);

  // Whether a snapshot waits for steps to leave, or an id keeps the door shut.
  bool is_shut() EXCLUDES(mutex_);

 private:
  struct Waiting {
    const std::function<void()>* take;
    bool taken = false;
    std::optional<Seconds> alone_until;  // when it first stalled a step, or was taken
  };
  struct Lease {
    Seconds end{0};
    std::set<uint64_t> guests;  // steps that it lets in
  };
  void hold_up() REQUIRES(mutex_);
  bool take_or_ask(Waiting* waiting) EXCLUDES(mutex_);  // true: taken
  bool is_taken_by(Waiting* waiting, Seconds until) EXCLUDES(mutex_);
  bool withdraw(Waiting* waiting) EXCLUDES(mutex_);  // false: it was taken after all
  void take_waiting() REQUIRES(mutex_);
  void enter_when_open(Seconds deadline, uint64_t step) EXCLUDES(mutex_);
  void wait_outside(Seconds deadline) REQUIRES(mutex_);
  bool is_guest(uint64_t step) REQUIRES(mutex_);
  void lose(const std::string& id) REQUIRES(mutex_);
  void count_doors() REQUIRES(mutex_);
  void drop_expired() REQUIRES(mutex_);
  void need_shut(const std::string& id) REQUIRES(mutex_);
  bool is_left_to(const std::string& id, Seconds until) REQUIRES(mutex_);  // waits; false: another id shuts the door
  bool is_empty_before(Seconds until) REQUIRES(mutex_);                    // waits; false: a step is still inside

  Clock& clock_;
  Mutex mutex_;
  CondVar changed_;
  int inside_ GUARDED_BY(mutex_) = 0;
  int outside_ GUARDED_BY(mutex_) = 0;   // steps that wait for the door
  size_t doors_ GUARDED_BY(mutex_) = 0;  // how many snapshots and ids keep the door shut: the size of the next two
  std::vector<Waiting*> waiting_ GUARDED_BY(mutex_);
  std::map<std::string, Lease> leases_ GUARDED_BY(mutex_);  // by their ids
};

}  // namespace longhaul
