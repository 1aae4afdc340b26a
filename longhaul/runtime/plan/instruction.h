#pragma once

#include <ATen/core/Generator.h>

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "longhaul/base/cancellation.h"
#include "longhaul/host/kernels/host_kernel.h"
#include "longhaul/runtime/aten/aten_call.h"
#include "longhaul/runtime/aten/out_overloads.h"
#include "longhaul/runtime/kernels/kernel.h"

namespace longhaul {

class PartExchange;
class RunPlace;

// The memory of one execution of a plan. It is kept for the next one, with its buffers.
struct Frame {
  std::vector<Value> slots;         // a value for each edge; empty between executions, constants excepted
  std::vector<at::Tensor> buffers;  // the previous execution's outputs, reused unless held elsewhere
  std::vector<c10::IValue> stack;
  std::vector<int64_t> feed_sizes;                // of the previous execution
  std::vector<Tensor> host_inputs, host_outputs;  // of one instruction; empty between them
  std::vector<RandomStream::Draw> draws;          // of this execution, one for each instruction that is random
  at::Generator generator;                        // of one instruction, for libtorch's operators on the host
  std::vector<at::Generator> device_generators;   // the same on each GPU
  WaitLimits limits;                              // of this execution
  PartExchange* exchange = nullptr;               // of this execution, if it is a part of a run over several tasks
  RunPlace* place = nullptr;                      // of this execution, if somebody may ask where it is
};

class HostInstruction;

// A step of a plan: reads and fills slots of the frame. Shared by all executions, so it is stateless.
class Instruction {
 public:
  // Its outputs go to consecutive slots starting at `first_output`.
  Instruction(Operation op, int first_output) : op_(op), first_output_(first_output) {}
  virtual ~Instruction() = default;
  virtual void run(Frame& frame, SessionState& resources) const = 0;
  virtual void check(Frame&, SessionState&) const {}
  // This is the slot's last use: its value may be moved from.
  virtual void allow_move(int) {}
  // Whether it appears in traces: it does the work of its operation.
  virtual bool is_traced() const { return true; }
  // The variables that it changes.
  virtual std::span<VariableSlot* const> written() const { return {}; }
  // Itself, if it needs no libtorch; else null.
  virtual const HostInstruction* as_host() const { return nullptr; }

  const Operation& op() const { return op_; }
  // What it may do (OpTraits).
  virtual uint32_t traits() const { return op_.traits(); }
  int first_output() const { return first_output_; }
  const std::vector<int>& releases() const { return releases_; }
  void release_after(int slot) { releases_.push_back(slot); }
  bool writes() const { return (traits() & kWritesVariable) != 0; }

 private:
  const Operation op_;
  const int first_output_;
  std::vector<int> releases_;  // slots not needed afterwards
};

// Reads a variable into a slot.
class ReadInstruction : public Instruction {
 public:
  ReadInstruction(Operation op, VariableSlot& variable, int output) : Instruction(op, output), variable_(variable) {}
  void run(Frame& frame, SessionState&) const override {
    frame.slots[static_cast<size_t>(first_output())] = variable_.read();
  }

 private:
  VariableSlot& variable_;
};

// Tells who waits for a change of the task's state that a restore has been done.
class CountChange : public Instruction {
 public:
  using Instruction::Instruction;
  void run(Frame&, SessionState& session) const override { session.task().changes().bump(); }
  bool is_traced() const override { return false; }
};

// Reads the position in an operation's random numbers into a slot (graph/builtin/random_ops.cc).
class ReadRandomState : public Instruction {
 public:
  ReadRandomState(Operation op, std::shared_ptr<RandomStream> stream, int output)
      : Instruction(op, output), stream_(std::move(stream)) {}
  void run(Frame& frame, SessionState&) const override;

 private:
  const std::shared_ptr<RandomStream> stream_;
};

// Runs a built-in operation's kernel.
class KernelInstruction : public Instruction {
 public:
  KernelInstruction(Operation op, const Kernel& kernel, std::vector<int> inputs, std::vector<VariableSlot*> variables,
                    int first_output)
      : Instruction(op, first_output), kernel_(kernel), inputs_(std::move(inputs)), variables_(std::move(variables)) {}
  void run(Frame& frame, SessionState& resources) const override;
  void check(Frame& frame, SessionState& resources) const override;
  std::span<VariableSlot* const> written() const override {
    return writes() ? std::span<VariableSlot* const>(variables_) : std::span<VariableSlot* const>();
  }

 private:
  const Kernel kernel_;
  const std::vector<int> inputs_;
  const std::vector<VariableSlot*> variables_;
};

// Runs an operation that needs no libtorch.
class HostInstruction : public Instruction {
 public:
  using Resources = std::vector<std::shared_ptr<Resource>>;
  // `places`: where each output goes. `draw`: its index in the frame's draws.
  HostInstruction(Operation op, HostKernel kernel, std::vector<int> inputs, Resources resources,
                  std::vector<ValuePlace> places, int first_output, std::optional<size_t> draw)
      : Instruction(op, first_output),
        kernel_(kernel),
        inputs_(std::move(inputs)),
        resources_(std::move(resources)),
        places_(std::move(places)),
        draw_(draw),
        movable_(inputs_.size(), false) {}
  void run(Frame& frame, SessionState& resources) const override;
  void allow_move(int slot) override;
  const HostInstruction* as_host() const override { return this; }

  // The same without a frame. `inputs` are in the operation's order, to be moved from; returns its outputs.
  std::vector<Tensor> call(std::span<Tensor> inputs, const WaitLimits& limits, SessionState& resources,
                           std::vector<Tensor> outputs = {}, std::optional<uint64_t> random_seed = {}) const;
  // The slots of the inputs; -1: a resource.
  const std::vector<int>& inputs() const { return inputs_; }

 private:
  Tensor input(size_t i, Frame& frame) const;

  const HostKernel kernel_;
  const std::vector<int> inputs_;
  const Resources resources_;
  const std::vector<ValuePlace> places_;
  const std::optional<size_t> draw_;
  std::vector<bool> movable_;
};

// Calls an ATen operator, boxed, reusing the argument stack; writes to buffers of the frame if the operator has an out
// overload that costs no more (out_overloads.h).
class AtenInstruction : public Instruction {
 public:
  // `first_buffer`: the index of its outputs' buffers in the frame, if uses_buffers(). `draw`: its index in the frame's
  // draws, if it takes a generator. `device`: where it runs.
  AtenInstruction(Operation op, AtenCall call, std::vector<int> inputs, int first_output, int first_buffer,
                  std::optional<size_t> draw, c10::Device device = c10::kCPU);
  void run(Frame& frame, SessionState& resources) const override;
  static bool uses_buffers(const Operation& op);

  void allow_move(int slot) override;

 private:
  at::Generator& generator(Frame& frame) const;
  void push_argument(const AtenArgument& argument, Frame& frame) const;
  void push_input(int input, Frame& frame) const;
  void push_buffers(Frame& frame) const;
  void pop_outputs(Frame& frame, bool fill_buffers) const;
  const Value& value(int input, const Frame& frame) const {
    return frame.slots[static_cast<size_t>(inputs_[static_cast<size_t>(input)])];
  }

  AtenCall call_;
  const std::vector<int> inputs_;
  std::vector<bool> movable_;
  const int first_buffer_;
  const std::optional<size_t> draw_;
  const c10::Device device_;
  const std::optional<OutCall> out_;
};

}  // namespace longhaul
