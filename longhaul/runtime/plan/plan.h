#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "longhaul/runtime/plan/plan_parts.h"

namespace longhaul {

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
  // From parts that were built with these resources, which outlive the plan.
  Plan(PlanParts parts, SessionResources& resources) : parts_(std::move(parts)), resources_(resources) {}

  // Appends a tensor for each fetch. `deadline`: on the monotonic clock; none if 0. `trace` may be null.
  void run(std::span<const Tensor* const> feeds, Seconds deadline, std::vector<Tensor>* results, StepTrace* trace);

  bool writes_variables() const { return parts_.writes_variables(); }

 private:
  void call_single(std::span<const Tensor* const> feeds, Seconds deadline, std::vector<Tensor>* results);
  void take_draws(Frame& frame) const;
  void give_draws_back(const Frame& frame) const;
  std::unique_ptr<Frame> take_frame();
  void give_back(std::unique_ptr<Frame> frame);
  void bind_feeds(std::span<const Tensor* const> feeds, Frame& frame) const;
  // `runner`: Untraced or a Tracer.
  template <typename Runner>
  void execute(Frame& frame, Seconds deadline, const Runner& runner);
  template <typename Runner>
  void execute_with_draws(Frame& frame, Seconds deadline, const Runner& runner);
  template <typename Runner>
  void read_snapshot(Frame& frame, Seconds deadline, const Runner& runner);
  template <typename Runner>
  void execute_range(Frame& frame, size_t begin, size_t end, Seconds deadline, const Runner& runner);
  template <typename Runner>
  void execute_writes(Frame& frame, Seconds deadline, const Runner& runner);
  void check(size_t instruction, Frame& frame) const;
  void mark_inconsistent(size_t failed);
  void collect(Frame& frame, std::vector<Tensor>* results) const;
  void clear_slots(Frame& frame) const;

  const PlanParts parts_;
  SessionResources& resources_;

  std::mutex mutex_;
  std::vector<std::unique_ptr<Frame>> spare_frames_;  // guarded by mutex_
};

}  // namespace longhaul
