#include "longhaul/runtime/plan/plan_builder.h"

#include <fmt/format.h>

#include <optional>
#include <set>

#include "longhaul/graph/builtin/random_state.h"
#include "longhaul/runtime/plan/exchange_instructions.h"
#include "longhaul/runtime/plan/index_check.h"
#include "longhaul/runtime/plan/loss_shapes.h"
#include "longhaul/runtime/plan/wanted_inputs.h"

namespace longhaul {
namespace {

bool is_variable(const Output& output) {
  return output.op().type() == "VariableV2";
}
bool runs_on_host(const Operation& op) {
  return find_host_kernel(op.type()) != nullptr;
}

VariableSlot& variable_slot(const Operation& variable, SessionState& resources, PlanParts& parts) {
  parts.variables.push_back(resources.variable(variable));
  VariableSlot& slot = *parts.variables.back();
  const auto* access = variable.find_attr<std::shared_ptr<HostFunction>>("program_value");
  const bool* initialized = variable.find_attr<bool>("always_initialized");
  if (access != nullptr) slot.set_program_value(*access, initialized != nullptr && *initialized);
  return slot;
}

// Operations that only pass on a value: their output is their input's slot.
bool is_alias(const Operation& op) {
  return (op.type() == "Identity" && !is_variable(op.inputs()[0])) || op.type() == "PlaceholderWithDefault";
}

// Which of the frame's draws the operation takes; none if it is not random.
std::optional<size_t> add_draw(PlanParts& parts, const Operation& op, SessionState& resources) {
  if (!has_random_stream(op)) return std::nullopt;
  parts.random_streams.push_back(resources.random_stream(op));
  return parts.random_streams.size() - 1;
}

}  // namespace

PlanBuilder::PlanBuilder(const Session::Request& request, SessionState& resources)
    : request_(request),
      resources_(resources),
      graph_(request),
      in_place_(request, graph_),
      placement_(resources, graph_) {}

PlanParts PlanBuilder::build() && {
  draft_.parts().is_snapshot = request_.options.snapshot;
  add_feeds();
  add_reads();
  const std::vector<Operation> ordered = graph_.ordered();
  bool is_writing = false;
  for (const Operation& op : ordered) {
    if (has_gpus() && !is_writing && writes_variable(op)) {
      is_writing = true;
      copy_inputs_of_writes(ordered);
    }
    add(op);
  }
  add_fetches();
  add_change_of_restore();
  draft_.parts().devices = placement_.moved();
  return std::move(draft_).complete(graph_);
}

// Before the first write: so that all of them can be checked before it, and nobody waits for a device in the gate.
void PlanBuilder::copy_inputs_of_writes(const std::vector<Operation>& ordered) {
  for (const Operation& op : ordered) {
    if (!writes_variable(op) || graph_.depends_on_write(op)) continue;
    placement_.place(op);
    const auto computed = in_place_.computed.find(op);
    input_slots(computed == in_place_.computed.end() ? op : computed->second.op);
  }
}

void PlanBuilder::add_feeds() {
  for (const Output& feed : request_.feeds) {
    const int slot = draft_.slots().add();
    draft_.slots().set(feed, slot);
    draft_.parts().feeds.push_back({feed, slot, graph_.place_of(feed)});
  }
}

// The variables that are read before any write, each once, at the start of the plan.
void PlanBuilder::add_reads() {
  const auto read_early = [&](const Output& variable) {
    if (graph_.is_fed(variable) || draft_.slots().is_read_early(variable)) return;
    draft_.slots().set_early_read(variable, add_read(variable));
  };
  for (const Operation& op : graph_.operations()) {
    if (graph_.depends_on_write(op)) continue;
    if (op.type() == "RandomState" && !graph_.is_fed(op.output())) read_random_state(op);
    const auto& inputs = op.inputs();
    for (size_t i = static_cast<size_t>(op.ref_inputs()); i < inputs.size(); ++i) {
      if (is_variable(inputs[i])) read_early(inputs[i]);
    }
  }
  for (const Fetch::Target& fetch : request_.fetches) {
    if (!fetch.is_operation() && is_variable(fetch.output())) read_early(fetch.output());
  }
  draft_.parts().end_of_reads = draft_.parts().instructions.size();
}

int PlanBuilder::add_read(const Output& variable) {
  const int slot = draft_.slots().add(placement_.device_of(variable));
  VariableSlot& read = variable_slot(variable.op(), resources_, draft_.parts());
  draft_.place(std::make_unique<ReadInstruction>(variable.op(), read, slot), {});
  return slot;
}

// As early as the variables: in a snapshot, at their moment.
void PlanBuilder::read_random_state(const Operation& op) {
  const int output = output_slots(op);
  draft_.place(std::make_unique<ReadRandomState>(op, resources_.random_stream(colocated_operation(op)), output), {});
}

int PlanBuilder::slot_of(const Output& output, bool after_write) {
  if (!is_variable(output) || graph_.is_fed(output)) return draft_.slots().of(output);
  return after_write ? add_read(output) : draft_.slots().early_read(output);
}

// Of its inputs' values, where it wants them.
std::vector<int> PlanBuilder::input_slots(const Operation& op) {
  std::vector<int> slots;
  for (size_t i = 0; i < op.inputs().size(); ++i) {
    const bool is_ref = static_cast<int>(i) < op.ref_inputs();
    slots.push_back(is_ref ? -1 : slot_of(op.inputs()[i], graph_.depends_on_write(op)));
  }
  if (!has_gpus()) return slots;
  const auto wanted = wanted_inputs(op, placement_.device_of_placed(op));
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] >= 0 && wanted[i]) slots[i] = draft_.on_device(slots[i], op.inputs()[i], *wanted[i]);
  }
  return slots;
}

// The first of the operation's consecutive output slots. A fed output keeps the feed's slot; what the operation
// computes for it goes into one that nobody reads.
int PlanBuilder::output_slots(const Operation& op) {
  SlotTable& slots = draft_.slots();
  const int first = slots.size();
  for (int i = 0; i < op.num_outputs(); ++i) {
    const int slot = slots.add(placement_.device_of_placed(op));
    if (!graph_.is_fed(op.output(i))) slots.set(op.output(i), slot);
  }
  return first;
}

void PlanBuilder::add(const Operation& op) {
  placement_.place(op);
  if (op.type() == "VariableV2" || op.type() == "NoOp" || (op.traits() & kIsResource) != 0) return;
  if (in_place_.delayed.contains(op)) return;
  if (op.type() == "Placeholder" && graph_.is_fed(op.output())) return;  // it is here for its control edges
  if (op.type() == "Placeholder") {
    throw InvalidArgumentError(
        fmt::format("You must feed a value for placeholder tensor '{}' with dtype {} and shape {}", op.name(),
                    dtype_name(op.output().dtype()), op.output().shape().to_string()));
  }
  if (op.type() == "Const") {
    const int slot = output_slots(op);
    draft_.parts().constants.emplace_back(slot, Value(op.attr<Tensor>("value")));
  } else if (op.type() == "Identity" || is_alias(op)) {
    if (!graph_.is_fed(op.output()))
      draft_.slots().set(op.output(), slot_of(op.inputs()[0], graph_.depends_on_write(op)));
  } else if (op.type() == "RandomState") {
    if (graph_.depends_on_write(op)) read_random_state(op);
  } else if (op.type().starts_with("aten::")) {
    add_aten(op);
  } else if (is_exchange(op)) {
    add_exchange(op);
  } else if (runs_on_host(op)) {
    add_host(op);
  } else if (const auto computed = in_place_.computed.find(op); computed != in_place_.computed.end()) {
    add_assignment(op, computed->second);
  } else {
    add_kernel(op);
  }
}

// Before a loss of a prediction and a target, or what comes first of its gradient, if their shapes may differ.
void PlanBuilder::add_loss_check(const Operation& op) {
  const Operation forward = forward_of(op);
  const std::optional<LossOfPair> pair = loss_of_pair(forward ? forward : op);
  if (!pair || (pair->prediction.shape().num_elements() >= 0 && pair->target.shape().num_elements() >= 0)) return;
  const SlotTable& slots = draft_.slots();
  const int prediction = slots.find(pair->prediction), target = slots.find(pair->target);
  if (prediction < 0 || target < 0 || !checked_losses_.insert(pair->loss).second) return;
  draft_.place(std::make_unique<LossShapeCheck>(*pair, prediction, target, slots.size()), {prediction, target});
}

void PlanBuilder::add_aten(const Operation& op) {
  add_loss_check(op);
  auto call = bind_aten_call({op.type(), op.name(), op.inputs(), op.attrs(), {}, {}});
  if (!call) throw NotFoundError(fmt::format("{}: this libtorch has no operator {}", op.name(), op.type()));
  const c10::Device device = placement_.device_of_placed(op);
  const std::vector<int> inputs = input_slots(op);
  if (!device.is_cpu()) {
    set_device(*call, device);
    if (auto check = index_check_of(op, *call, inputs, draft_.slots())) {
      const std::vector<int> taken = check->taken();
      draft_.place(std::move(check), taken);
    }
  }
  int first_buffer = 0;
  if (AtenInstruction::uses_buffers(op)) {
    first_buffer = draft_.parts().num_buffers;
    draft_.parts().num_buffers += op.num_outputs();
  }
  const int first_output = output_slots(op);
  draft_.place(std::make_unique<AtenInstruction>(op, *std::move(call), inputs, first_output, first_buffer,
                                                 add_draw(draft_.parts(), op, resources_), device),
               inputs);
}

void PlanBuilder::add_kernel(const Operation& op) {
  const Kernel* kernel = find_kernel(op.type());
  if (kernel == nullptr)
    throw UnimplementedError(fmt::format("{}: this session cannot run operations of type {}", op.name(), op.type()));
  add_loss_check(op);
  std::vector<VariableSlot*> variables;
  for (int i = 0; i < op.ref_inputs(); ++i) {
    variables.push_back(&variable_slot(op.inputs()[static_cast<size_t>(i)].op(), resources_, draft_.parts()));
  }
  const std::vector<int> inputs = input_slots(op);
  const int first_output = output_slots(op);
  draft_.place(std::make_unique<KernelInstruction>(op, *kernel, inputs, std::move(variables), first_output), inputs);
}

void PlanBuilder::add_assignment(const Operation& assign, const ComputedInPlace& computed) {
  const c10::Device device = placement_.device_of_placed(assign);
  if (placement_.device_of_placed(computed.op) != device) {
    add_aten(computed.op);
    return add_kernel(assign);
  }
  VariableSlot& variable = variable_slot(assign.inputs()[0].op(), resources_, draft_.parts());
  const std::vector<int> inputs = input_slots(computed.op);
  const int read = draft_.slots().early_read(assign.inputs()[0]), value = draft_.slots().add(device),
            first_output = output_slots(assign);
  const int first_buffer = draft_.parts().num_buffers;
  if (AtenInstruction::uses_buffers(computed.op)) draft_.parts().num_buffers += computed.op.num_outputs();
  AssignInPlace::Parts parts{
      .variable = &variable, .read = read, .inputs = inputs, .value = value, .out = computed.out};
  parts.compute =
      std::make_unique<AtenInstruction>(computed.op, computed.call, inputs, value, first_buffer, std::nullopt);
  parts.assign = std::make_unique<KernelInstruction>(assign, *find_kernel("Assign"), std::vector<int>{-1, value},
                                                     std::vector<VariableSlot*>{&variable}, first_output);
  std::vector<int> taken = inputs;
  std::erase(taken, read);
  draft_.place(std::make_unique<AssignInPlace>(assign, assign.inputs()[0].shape(), std::move(parts), first_output),
               taken);
}

void PlanBuilder::add_exchange(const Operation& op) {
  const std::vector<int> inputs = input_slots(op);
  const ValuePlace to = op.num_outputs() == 0 ? ValuePlace::kHost : graph_.place_of(op.output());
  const int first_output = output_slots(op);
  draft_.place(make_exchange_instruction(op, inputs.empty() ? -1 : inputs[0], to, first_output), inputs);
}

// After the writes: whoever waits for a model that is ready looks again.
void PlanBuilder::add_change_of_restore() {
  if (!draft_.parts().writes_variables()) return;
  for (const Operation& op : graph_.operations()) {
    if (op.type() != "RestoreV2") continue;
    draft_.place(std::make_unique<CountChange>(op, draft_.slots().size()), {});
    return;
  }
}

void PlanBuilder::add_host(const Operation& op) {
  HostInstruction::Resources resources;
  for (int i = 0; i < op.ref_inputs(); ++i) {
    resources.push_back(resource_of(op.inputs()[static_cast<size_t>(i)].op(), resources_.host_resources()));
  }
  const std::vector<int> inputs = input_slots(op);
  std::vector<ValuePlace> places;
  for (int i = 0; i < op.num_outputs(); ++i) places.push_back(graph_.place_of(op.output(i)));
  const int first_output = output_slots(op);
  draft_.place(
      std::make_unique<HostInstruction>(op, find_host_kernel(op.type()), inputs, std::move(resources),
                                        std::move(places), first_output, add_draw(draft_.parts(), op, resources_)),
      inputs);
}

void PlanBuilder::add_fetches() {
  std::set<int> on_devices;
  for (const Fetch::Target& fetch : request_.fetches) {
    if (!fetch.is_operation() && fetch.output().dtype() == kResource) {
      throw InvalidArgumentError(
          fmt::format("{} cannot be fetched: it is a handle to a {}", fetch.output().name(), fetch.op.type()));
    }
    int slot = -1;
    if (!fetch.is_operation()) {
      slot = graph_.is_fed(fetch.output()) ? draft_.slots().of(fetch.output()) : slot_of(fetch.output(), false);
    }
    draft_.parts().fetches.push_back({slot, /*may_move=*/false});
    if (slot >= 0 && !draft_.slots().device_of(slot).is_cpu()) on_devices.insert(slot);
  }
  draft_.parts().fetched_from_devices.assign(on_devices.begin(), on_devices.end());
}

}  // namespace longhaul
