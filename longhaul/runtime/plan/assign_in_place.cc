#include "longhaul/runtime/plan/assign_in_place.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/runtime/kernels/kernel.h"

namespace longhaul {
namespace {

bool is_variable(const Output& output) {
  return output.op().type() == "VariableV2";
}

// What the plan needs to know of each operation before it may be delayed.
class Uses {
 public:
  Uses(const Session::Request& request, const NeededGraph& graph) : graph_(graph) {
    for (const Operation& op : graph.operations()) {
      for (const Output& input : op.inputs()) ++takers_[input.op()];
      for (const Operation& before : op.control_inputs()) ++takers_[before];
      if (!writes_variable(op)) continue;
      for (int i = 0; i < op.ref_inputs(); ++i) ++writers_[op.inputs()[static_cast<size_t>(i)].op()];
    }
    for (const Fetch::Target& fetch : request.fetches) ++takers_[fetch.op];
  }

  bool may_compute_in_place(const Operation& assign) const {
    if (assign.type() != "Assign") return false;
    const Output& variable = assign.inputs()[0];
    const Output& value = assign.inputs()[1];
    return is_fit(variable) && writers_.at(variable.op()) == 1 && is_for_it_alone(value) &&
           value.dtype() == variable.dtype() && value.shape() == variable.shape() && takes(value.op(), variable);
  }

 private:
  static bool is_fit(const Output& variable) {
    const bool is_number = variable.dtype() == kFloat || variable.dtype() == kDouble;
    return is_number && variable.shape().num_elements() >= 0 &&
           !variable.op().find_attr<std::shared_ptr<HostFunction>>("program_value");
  }

  bool is_for_it_alone(const Output& value) const {
    return is_elementwise(value.op().type()) && !graph_.is_fed(value) && takers_.at(value.op()) == 1 &&
           !graph_.depends_on_write(value.op());
  }

  // The variable, and else what cannot be its memory, nor that of a variable that is written meanwhile.
  bool takes(const Operation& computed, const Output& variable) const {
    bool is_taken = false;
    for (const Output& given : computed.inputs()) {
      const Output input = behind_identities(given);
      if (input == variable && !graph_.is_fed(input)) {
        is_taken = true;
      } else if (!is_apart(input) || input.dtype() != variable.dtype() ||
                 (input.shape() != variable.shape() && input.shape() != Shape{})) {
        return false;
      }
    }
    return is_taken;
  }

  Output behind_identities(Output value) const {
    while (!graph_.is_fed(value) && value.op().type() == "Identity") value = value.op().inputs()[0];
    return value;
  }

  bool is_apart(const Output& input) const {
    if (graph_.is_fed(input) || input.op().type() == "Const") return true;
    return is_variable(input) ? !writers_.contains(input.op()) : has_out_overload(input.op().type());
  }

  const NeededGraph& graph_;
  std::unordered_map<Operation, int, OperationHash> takers_, writers_;
};

// nullopt: it cannot, in this libtorch or with these arguments.
std::optional<ComputedInPlace> bind_in_place(const Operation& op) {
  auto call = bind_aten_call({op.type(), op.name(), op.inputs(), op.attrs(), {}, {}});
  auto out = call ? bind_out_call(op.type(), *call) : std::nullopt;
  const auto is_plain = [](const AtenArgument& argument) {
    return argument.source == AtenArgument::Source::kConstant || argument.source == AtenArgument::Source::kTensor;
  };
  if (!out || !std::all_of(out->arguments.begin(), out->arguments.end(), is_plain)) return std::nullopt;
  return ComputedInPlace{op, *std::move(call), *std::move(out)};
}

}  // namespace

AssignmentsInPlace::AssignmentsInPlace(const Session::Request& request, const NeededGraph& graph) {
  const Uses uses(request, graph);
  for (const Operation& op : graph.operations()) {
    auto in_place = uses.may_compute_in_place(op) ? bind_in_place(op.inputs()[1].op()) : std::nullopt;
    if (!in_place) continue;
    delayed.insert(in_place->op);
    computed.emplace(op, *std::move(in_place));
  }
}

bool AssignInPlace::fits(const Frame& frame) const {
  const auto has_shape = [&](int slot) {
    if (slot == parts_.read) return true;
    const at::Tensor& tensor = frame.slots[static_cast<size_t>(slot)].tensor;
    return tensor.dim() == 0 || tensor.sizes() == sizes_;
  };
  return parts_.variable->read().tensor.sizes() == sizes_ &&
         std::all_of(parts_.inputs.begin(), parts_.inputs.end(), has_shape);
}

void AssignInPlace::check(Frame& frame, SessionState& session) const {
  if (fits(frame)) return;
  Value& read = frame.slots[static_cast<size_t>(parts_.read)];
  const bool is_kept = read.defined();  // for another operation
  if (!is_kept) read = parts_.variable->read();
  parts_.compute->run(frame, session);
  if (!is_kept) read.reset();
  parts_.assign->check(frame, session);
}

void AssignInPlace::write(Frame& frame, const at::Tensor& source, const at::Tensor& destination) const {
  if (source.sizes() != sizes_)
    throw InvalidArgumentError(fmt::format("another run has just changed the shape of {}", parts_.variable->name()));
  frame.stack.clear();
  for (const AtenArgument& argument : parts_.out.arguments) {
    if (argument.source == AtenArgument::Source::kConstant) {
      frame.stack.push_back(argument.constant);
      continue;
    }
    const int slot = parts_.inputs[static_cast<size_t>(argument.first_input)];
    frame.stack.emplace_back(slot == parts_.read ? source : frame.slots[static_cast<size_t>(slot)].tensor);
  }
  frame.stack.emplace_back(destination);
  parts_.out.op.callBoxed(&frame.stack);
  frame.stack.clear();
}

void AssignInPlace::run(Frame& frame, SessionState& session) const {
  Value& computed = frame.slots[static_cast<size_t>(parts_.value)];
  if (computed.defined()) {
    parts_.assign->run(frame, session);
    return computed.reset();
  }
  at::Tensor written = parts_.variable->update(
      [&](const at::Tensor& source, at::Tensor& destination) { write(frame, source, destination); });
  session.variables().mark_consistent(*parts_.variable);
  frame.slots[static_cast<size_t>(first_output())] = Value(std::move(written));
}

}  // namespace longhaul
