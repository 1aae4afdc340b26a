#pragma once

#include "longhaul/base/clock.h"
#include "longhaul/runtime/plan/instruction.h"
#include "longhaul/runtime/plan/run_place.h"
#include "longhaul/session/step_trace.h"

namespace longhaul {

// How a plan runs its instructions: directly, at no cost,
struct Untraced {
  void run(const Instruction& instruction, Frame& frame, SessionState& resources) const {
    instruction.run(frame, resources);
  }
};

// noting each one in the frame's place,
struct Placed {
  void run(const Instruction& instruction, Frame& frame, SessionState& resources) const {
    frame.place->enter(instruction.op());
    instruction.run(frame, resources);
  }
};

// or with a record of each one's times and results in `trace`, and noting it if the frame has a place. One that throws
// is not recorded.
class Tracer {
 public:
  explicit Tracer(StepTrace& trace) : trace_(trace) { trace_.wall_time = Clock::real().wall_time(); }

  void run(const Instruction& instruction, Frame& frame, SessionState& resources) const {
    if (frame.place != nullptr) frame.place->enter(instruction.op());
    if (!instruction.is_traced()) return instruction.run(frame, resources);
    const Seconds start = since_beginning();
    instruction.run(frame, resources);
    const Seconds end = since_beginning();
    trace_.operations.push_back({instruction.op(), start, end, results_of(instruction, frame)});
  }

 private:
  Seconds since_beginning() const { return Clock::real().now() - beginning_; }

  static std::vector<TracedOperation::Result> results_of(const Instruction& instruction, const Frame& frame) {
    std::vector<TracedOperation::Result> results;
    for (int slot = 0; slot < instruction.op().num_outputs(); ++slot) {
      const Value& value = frame.slots[static_cast<size_t>(instruction.first_output() + slot)];
      if (value.defined()) results.push_back({slot, value.dtype(), value.shape()});
    }
    return results;
  }

  StepTrace& trace_;
  const Seconds beginning_ = Clock::real().now();
};

}  // namespace longhaul
