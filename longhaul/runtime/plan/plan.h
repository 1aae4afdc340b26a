#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/runtime/plan/plan_parts.h"

namespace longhaul {

class Prepared;
class SnapshotMoment;
class Tracer;
struct PartRun;
struct StepTrace;

// The part of a graph that some fetches need, as a flat list of instructions in an order that respects all dependencies
// (made by PlanBuilder).
//
//   read the variables --> compute --> [enter the gate, check all writes, write, leave] --> compute what needs the new
//   values
//
// Writes come as late and as close together as the dependencies allow. Variables that nothing earlier in the run has
// written are read at the very start; a snapshot run does all these reads at one moment inside the gate. Any thread may
// run a plan, and several may do so concurrently: each has its own Frame.
class Plan {
 public:
  // From parts that were built with this state.
  Plan(PlanParts parts, std::shared_ptr<SessionState> session)
      : parts_(std::move(parts)), session_(std::move(session)) {}

  // Appends a tensor for each fetch. The limits' deadline is on the monotonic clock. Their cancellation is the run's
  // own, Cancellation(&session.cancellation()), which counts between operations too, up to the first write; null: the
  // session's, which ends waits. Cancelled after its writes: CancelledError with StepFate::kCommitted. `trace` may be
  // null.
  void run(std::span<const Tensor* const> feeds, const WaitLimits& limits, std::vector<Tensor>* results,
           StepTrace* trace);

  // Runs the plan up to its first write, and checks its writes; the rest is the result's (prepared.h). Throws what
  // run() throws up to there.
  static Prepared prepare(std::shared_ptr<Plan> plan, std::span<const Tensor* const> feeds, const PartRun& how);

  bool writes_variables() const { return parts_.writes_variables(); }
  bool draws_random_numbers() const { return !parts_.random_streams.empty(); }
  // The containers of the variables that it writes, sorted, each once.
  std::vector<std::string> written_containers() const;
  const DevicesOfOperations& devices() const { return parts_.devices; }

  // A run in phases, for Prepared, which calls them in this order, and write() only if the run changes the task's
  // state. What begin() took goes to end(), also after an error. `tracer` may be null.
  //
  // `is_step`: of a run that writes variables, here or in another of its parts.
  std::unique_ptr<Frame> begin(std::span<const Tensor* const> feeds, const PartRun& how, bool is_step);
  void compute_to_write(std::span<const Tensor* const> feeds, Frame& frame, const PartRun& how, const Tracer* tracer);
  void write(Frame& frame, uint64_t step, const Tracer* tracer);
  void finish(Frame& frame, Seconds deadline, const Tracer* tracer, std::vector<Tensor>* results);
  // `gives_draws_back`: of a step whose write() has not been made.
  void end(std::unique_ptr<Frame> frame, bool gives_draws_back) noexcept;
  // Lets the write() of this step through a gate that is kept shut (StepGate::let_in).
  void let_in(const std::string& door, uint64_t step) const;
  void mark_inconsistent(const std::string& why);  // all that it writes

 private:
  WaitLimits waits_within(const WaitLimits& limits) const;
  void call_single(std::span<const Tensor* const> feeds, const WaitLimits& limits, std::vector<Tensor>* results);
  void take_draws(Frame& frame, bool is_step) const;
  void give_draws_back(const Frame& frame, bool is_step) const;
  std::unique_ptr<Frame> take_frame();
  void give_back(std::unique_ptr<Frame> frame);
  void bind_feeds(std::span<const Tensor* const> feeds, Frame& frame) const;
  // `runner`: Untraced or a Tracer. `limits`: as given to run().
  template <typename Runner>
  void execute(Frame& frame, const WaitLimits& limits, const Runner& runner);
  template <typename Runner>
  void execute_with_draws(Frame& frame, const WaitLimits& limits, const Runner& runner);
  // `door`: the id that keeps the gate shut; null: none.
  template <typename Runner>
  void read_snapshot(Frame& frame, Seconds deadline, const std::string* door, const Runner& runner);
  // Some values may come later (`moment`); null: none may.
  template <typename Runner>
  void read_between_steps(Frame& frame, Seconds deadline, const std::string* door, const Runner& runner,
                          SnapshotMoment* moment);
  template <typename Runner>
  void read_all(Frame& frame, const Runner& runner, SnapshotMoment* moment) const;
  template <typename Runner>
  void execute_range(Frame& frame, size_t begin, size_t end, const WaitLimits& limits, const Runner& runner);
  template <typename Runner>
  void execute_after_writes(Frame& frame, const WaitLimits& limits, const Runner& runner);
  template <typename Runner>
  void execute_writes(Frame& frame, const WaitLimits& limits, const Runner& runner);
  template <typename Runner>
  void write_inside(Frame& frame, const Runner& runner);
  // The same in the phases of a Prepared.
  template <typename Body>
  void with_runner(const Frame& frame, const Tracer* tracer, const Body& body) const;
  void check(size_t instruction, Frame& frame) const;
  void mark_inconsistent(size_t failed);
  void collect(Frame& frame, std::vector<Tensor>* results) const;
  void clear_slots(Frame& frame) const;

  const PlanParts parts_;
  const std::shared_ptr<SessionState> session_;

  std::mutex mutex_;
  std::vector<std::unique_ptr<Frame>> spare_frames_;  // guarded by mutex_
};

}  // namespace longhaul
