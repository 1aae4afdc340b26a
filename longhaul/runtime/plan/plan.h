#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "longhaul/runtime/plan/instruction.h"
#include "longhaul/session/session.h"

namespace longhaul {

struct StepTrace;

// The part of a graph that some fetches need, as a flat list of instructions in an order that respects all
// dependencies.
//
//   read the variables --> compute --> [enter the gate, check all writes, write, leave] --> compute what needs the new
//   values
//
// Writes come as late and as close together as the dependencies allow. Reading a variable that nothing earlier in the
// run has written happens at the very start; a snapshot run does all of that at one moment inside the gate. Any thread
// may run a plan, and several may at once: each has a Frame of its own.
class Plan {
 public:
  // InvalidArgumentError: the fetches cannot be computed from the feeds, an operation that this process cannot run, or
  // a snapshot that writes variables.
  Plan(const Session::Request& request, SessionResources& resources);

  // Appends a tensor for each fetch. `deadline`: of the monotonic clock; none if 0. `trace` may be null.
  void run(std::span<const Tensor* const> feeds, Seconds deadline, std::vector<Tensor>* results, StepTrace* trace);

  bool writes_variables() const { return first_write_ < end_of_writes_; }
  const std::vector<Output>& feeds() const { return feeds_; }

 private:
  friend class PlanBuilder;

  // A plan that is one operation without libtorch, from the feeds to the fetches: a queue's enqueue or dequeue above
  // all. It needs no frame.
  struct SingleCall {
    const HostInstruction* instruction = nullptr;
    std::vector<int> feeds;     // for each input: which feed; -1: it is a resource
    std::vector<int> outputs;   // for each fetch: which output; -1: it is the operation
    bool all_in_order = false;  // the fetches are the outputs
  };

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
  void find_written();
  void check(size_t instruction, Frame& frame);
  void mark_inconsistent(size_t failed);
  void collect(Frame& frame, std::vector<Tensor>* results) const;
  void clear_slots(Frame& frame) const;

  SessionResources& resources_;
  std::vector<Output> feeds_;
  std::vector<int> feed_slots_;
  std::vector<bool> host_only_feeds_;  // nobody needs them as libtorch's
  std::vector<int> fetch_slots_;       // -1: an operation
  std::vector<bool> last_fetches_;     // nobody else looks at the slot afterwards
  std::vector<std::unique_ptr<Instruction>> instructions_;
  size_t end_of_reads_ = 0, first_write_ = 0, end_of_writes_ = 0;
  std::vector<VariableSlot*> written_;  // by the writes
  std::vector<size_t> checks_first_;    // writes whose check needs nothing that an earlier write of the plan changes
  bool snapshot_ = false;
  bool only_host_ = false;  // no instruction needs libtorch
  std::optional<SingleCall> single_call_;
  int num_slots_ = 0, num_buffers_ = 0;
  std::vector<std::shared_ptr<RandomStream>> random_streams_;  // one for each of Frame::draws
  std::vector<std::pair<int, Value>> constants_;
  std::vector<bool> is_constant_;

  std::mutex mutex_;
  std::vector<std::unique_ptr<Frame>> spare_frames_;  // guarded by mutex_
};

}  // namespace longhaul
