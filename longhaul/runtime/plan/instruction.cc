#include "longhaul/runtime/plan/instruction.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "longhaul/runtime/aten/draw_generator.h"
#include "longhaul/runtime/aten/index_errors.h"
#include "longhaul/runtime/plan/loss_shapes.h"

namespace longhaul {
namespace {

using Source = AtenArgument::Source;

// Marks the input that is this slot, if one alone is.
void mark_single_use(const std::vector<int>& inputs, int slot, std::vector<bool>* movable) {
  if (std::count(inputs.begin(), inputs.end(), slot) != 1) return;
  (*movable)[static_cast<size_t>(std::find(inputs.begin(), inputs.end(), slot) - inputs.begin())] = true;
}

}  // namespace

void HostInstruction::allow_move(int slot) {
  mark_single_use(inputs_, slot, &movable_);
}

Tensor HostInstruction::input(size_t i, Frame& frame) const {
  if (inputs_[i] < 0) return Tensor();
  Value& value = frame.slots[static_cast<size_t>(inputs_[i])];
  return movable_[i] ? std::move(value).to_host() : std::as_const(value).to_host();
}

std::vector<Tensor> HostInstruction::call(std::span<Tensor> inputs, const WaitLimits& limits, SessionState& resources,
                                          std::vector<Tensor> results, std::optional<uint64_t> random_seed) const {
  results.clear();
  HostCall call{op(),
                inputs,
                resources_,
                limits,
                resources.files(),
                resources.host_resources(),
                std::move(results),
                random_seed,
                &resources.shared_cancellation(),
                &resources.task().clock()};
  kernel_(call);
  return std::move(call.results);
}

void HostInstruction::run(Frame& frame, SessionState& resources) const {
  std::vector<Tensor>& inputs = frame.host_inputs;
  inputs.clear();
  for (size_t i = 0; i < inputs_.size(); ++i) inputs.push_back(input(i, frame));
  const auto seed = draw_ ? std::optional(frame.draws[*draw_].seed) : std::nullopt;
  frame.host_outputs = call(inputs, frame.limits, resources, std::move(frame.host_outputs), seed);
  Value* out = frame.slots.data() + first_output();  // past the end, if it has no outputs
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i] == ValuePlace::kHost) {
      out[i].host = std::move(frame.host_outputs[i]);
    } else {
      out[i] = Value(frame.host_outputs[i]);
    }
  }
  inputs.clear();
  frame.host_outputs.clear();
}

void ReadRandomState::run(Frame& frame, SessionState&) const {
  frame.slots[static_cast<size_t>(first_output())] = Value(as_tensor(stream_->state()));
}

void KernelInstruction::run(Frame& frame, SessionState& resources) const {
  KernelContext context(op(), inputs_, releases(), variables_, first_output(), frame.slots, resources);
  kernel_.run(context);
}

void KernelInstruction::check(Frame& frame, SessionState& resources) const {
  if (kernel_.check == nullptr) return;
  kernel_.check(KernelContext(op(), inputs_, releases(), variables_, first_output(), frame.slots, resources));
}

bool AtenInstruction::uses_buffers(const Operation& op) {
  return has_out_overload(op.type());
}

AtenInstruction::AtenInstruction(Operation op, AtenCall call, std::vector<int> inputs, int first_output,
                                 int first_buffer, std::optional<size_t> draw, c10::Device device)
    : Instruction(op, first_output),
      call_(std::move(call)),
      inputs_(std::move(inputs)),
      movable_(inputs_.size(), false),
      first_buffer_(first_buffer),
      draw_(draw),
      device_(device),
      out_(bind_out_call(this->op().type(), call_)) {}

void AtenInstruction::allow_move(int slot) {
  mark_single_use(inputs_, slot, &movable_);
}

at::Generator& AtenInstruction::generator(Frame& frame) const {
  if (device_.is_cpu()) return frame.generator;
  const auto index = static_cast<size_t>(device_.index());
  if (frame.device_generators.size() <= index) frame.device_generators.resize(index + 1);
  return frame.device_generators[index];
}

void AtenInstruction::run(Frame& frame, SessionState&) const {
  frame.stack.clear();
  if (draw_) seed_for_draw(frame.draws[*draw_].seed, device_, generator(frame));
  const bool into_buffers = out_ && frame.buffers[static_cast<size_t>(first_buffer_)].defined();
  for (const AtenArgument& argument : (into_buffers ? out_->arguments : call_.arguments))
    push_argument(argument, frame);
  if (into_buffers) push_buffers(frame);
  try {
    (into_buffers ? out_->op : call_.op).callBoxed(&frame.stack);
  } catch (const c10::Error&) {
    const std::string text = index_error_text(op().type(), frame.stack);
    if (text.empty()) throw;
    throw InvalidArgumentError(operation_error_text(op(), text));
  }
  pop_outputs(frame, out_ && !into_buffers);
}

void AtenInstruction::push_input(int input, Frame& frame) const {
  at::Tensor& tensor = frame.slots[static_cast<size_t>(inputs_[static_cast<size_t>(input)])].tensor;
  if (movable_[static_cast<size_t>(input)]) {
    frame.stack.emplace_back(std::move(tensor));
  } else {
    frame.stack.emplace_back(tensor);
  }
}

void AtenInstruction::push_argument(const AtenArgument& argument, Frame& frame) const {
  switch (argument.source) {
    case Source::kConstant: frame.stack.push_back(argument.constant); break;
    case Source::kTensor: push_input(argument.first_input, frame); break;
    case Source::kTensorList: {
      c10::List<at::Tensor> list;
      for (int i = 0; i < argument.count; ++i) list.push_back(value(argument.first_input + i, frame).tensor);
      frame.stack.emplace_back(std::move(list));
      break;
    }
    case Source::kOptionalTensorList: {
      c10::List<c10::optional<at::Tensor>> list;
      for (int i = 0; i < argument.count; ++i) list.push_back(value(argument.first_input + i, frame).tensor);
      frame.stack.emplace_back(std::move(list));
      break;
    }
    case Source::kInts: {
      const at::Tensor& ints = value(argument.first_input, frame).tensor;
      const int64_t* data = ints.data_ptr<int64_t>();
      frame.stack.emplace_back(std::vector<int64_t>(data, data + ints.numel()));
      break;
    }
    case Source::kInt: frame.stack.emplace_back(value(argument.first_input, frame).tensor.item<int64_t>()); break;
    case Source::kScalar: frame.stack.emplace_back(value(argument.first_input, frame).tensor.item()); break;
    case Source::kGenerator: frame.stack.emplace_back(generator(frame)); break;
  }
}

void AtenInstruction::push_buffers(Frame& frame) const {
  for (int i = 0; i < op().num_outputs(); ++i) {
    at::Tensor& buffer = frame.buffers[static_cast<size_t>(first_buffer_ + i)];
    if (!VariableSlot::exclusive(buffer)) buffer = at::empty({0}, buffer.options());
    frame.stack.emplace_back(buffer);
  }
}

void AtenInstruction::pop_outputs(Frame& frame, bool fill_buffers) const {
  int index = 0;
  for (c10::IValue& result : frame.stack) {
    if (result.isTensorList()) {
      for (const at::Tensor& tensor : result.toTensorVector())
        frame.slots[static_cast<size_t>(first_output() + index++)] = Value(tensor);
      continue;
    }
    at::Tensor tensor = std::move(result).toTensor();
    if (fill_buffers) frame.buffers[static_cast<size_t>(first_buffer_ + index)] = tensor;
    frame.slots[static_cast<size_t>(first_output() + index++)].tensor = std::move(tensor);
  }
  frame.stack.clear();
}

}  // namespace longhaul
