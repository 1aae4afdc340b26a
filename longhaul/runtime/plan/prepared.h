#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "longhaul/runtime/plan/plan.h"

namespace longhaul {

class PartExchange;
class RunPlace;

// How a plan is run in steps, as a part of a run over several tasks. What it points to outlives the Prepared.
struct PartRun {
  Seconds deadline{0};                   // on the monotonic clock; 0: none
  Cancellation* cancellation = nullptr;  // of this run: Cancellation(&session.cancellation()); null: the session's own
  PartExchange* exchange = nullptr;      // with the other parts; null: there are none
  StepTrace* trace = nullptr;
  RunPlace* place = nullptr;  // where the run says where it is; null: nobody asks
  bool is_step = false;       // other parts write variables, so random numbers are drawn and committed as in a step
  std::string door{};         // a snapshot run reads its variables while this id keeps the gate shut (StepGate::take)
};

// A run that has computed all that precedes its first write, and has checked its writes.
//
//   Plan::prepare --> prepared --write--> written --finish--> done
//                        |                   +--abort, drop--> done, written
//                        +--abort, drop--> done, nothing was written
//
// It holds no lock, and nobody waits for it: it may be kept, moved to another thread, or dropped at any time. It keeps
// its plan alive, and with it variables and queues that a reset removes meanwhile. One thread at a time.
//
//   Prepared part = Plan::prepare(plan, feeds, {.deadline = deadline, .exchange = &exchange});
//   ...                            // all other parts are prepared
//   part.commit(&results);
class Prepared {
 public:
  // What Plan::prepare() does.
  Prepared(std::shared_ptr<Plan> plan, std::span<const Tensor* const> feeds, const PartRun& how);
  Prepared(Prepared&&) noexcept;
  Prepared& operator=(Prepared&&) = delete;
  ~Prepared();  // aborts

  bool writes() const { return plan_ && plan_->writes_variables(); }
  // Whether write() changes the task's state: it writes variables, or commits the random numbers of a step.
  bool changes_state() const { return writes() || (plan_ && how_.is_step && plan_->draws_random_numbers()); }
  // Whether all writes were made: the step has taken place, even if what follows them fails.
  bool written() const { return written_; }

  // Enters the gate, checks the writes again, makes them, and leaves. The deadline and a cancellation no longer count,
  // since other tasks may have committed the step; the wait at the gate is bounded by that of a snapshot. After an
  // error it is done. AbortedError: the session was aborted by a reset of the task, and nothing is written. The errors
  // of the checks: likewise nothing. FailedPreconditionError: it was not prepared any more.
  void write();
  // A snapshot of several tasks, which keeps the gate shut under this id, has learned that another task has committed
  // the step: write() enters although the door is shut (StepGate::let_in, with its errors). Any thread, before write()
  // or during it.
  void let_in(const std::string& door) const;
  // Other tasks have committed the step, and this one has not, or not all of it: until the variables that it writes are
  // assigned again, no snapshot is taken. In any state.
  void mark_inconsistent(const std::string& why) {
    if (plan_) plan_->mark_inconsistent(why);
  }
  // Runs what follows the writes, within the deadline and the cancellation, and appends a tensor for each fetch.
  void finish(std::vector<Tensor>* results);

  void commit(std::vector<Tensor>* results) {
    write();
    finish(results);
  }
  // Drops the step, as if it had never begun. After write(): drops only what follows. May be called again.
  void abort() noexcept;

 private:
  void need_state(bool written) const;
  bool is_step() const { return how_.is_step || writes(); }

  std::shared_ptr<Plan> plan_;
  PartRun how_;
  uint64_t step_;  // its number at the gate
  std::unique_ptr<Tracer> tracer_;
  std::unique_ptr<Frame> frame_;  // null: done
  bool written_ = false;
};

}  // namespace longhaul
