#include "longhaul/runtime/plan/plan_builder.h"

#include <fmt/format.h>

#include <optional>

#include "longhaul/graph/builtin/random_state.h"
#include "longhaul/runtime/plan/exchange_instructions.h"
#include "longhaul/runtime/plan/loss_shapes.h"

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
    : request_(request), resources_(resources), graph_(request), in_place_(request, graph_) {}

PlanParts PlanBuilder::build() && {
  parts_.is_snapshot = request_.options.snapshot;
  add_feeds();
  add_reads();
  for (const Operation& op : graph_.ordered()) add(op);
  add_fetches();
  add_change_of_restore();
  complete_plan(parts_, graph_, slots_.size(), uses_);
  return std::move(parts_);
}

void PlanBuilder::add_feeds() {
  for (const Output& feed : request_.feeds) {
    const int slot = slots_.add();
    slots_.set(feed, slot);
    parts_.feeds.push_back({feed, slot, graph_.place_of(feed)});
  }
}

// The variables that are read before any write, each once, at the start of the plan.
void PlanBuilder::add_reads() {
  const auto read_early = [&](const Output& variable) {
    if (graph_.is_fed(variable) || slots_.is_read_early(variable)) return;
    const int slot = slots_.add();
    slots_.set_early_read(variable, slot);
    place(std::make_unique<ReadInstruction>(variable.op(), variable_slot(variable.op(), resources_, parts_), slot), {});
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
  parts_.end_of_reads = parts_.instructions.size();
}

// As early as the variables: in a snapshot, at their moment.
void PlanBuilder::read_random_state(const Operation& op) {
  const int output = output_slots(op);
  place(std::make_unique<ReadRandomState>(op, resources_.random_stream(colocated_operation(op)), output), {});
}

int PlanBuilder::read_slot(const Output& variable, bool after_write) {
  if (graph_.is_fed(variable)) return slots_.of(variable);
  if (!after_write) return slots_.early_read(variable);
  const int slot = slots_.add();
  place(std::make_unique<ReadInstruction>(variable.op(), variable_slot(variable.op(), resources_, parts_), slot), {});
  return slot;
}

int PlanBuilder::slot_of(const Output& output, bool after_write) {
  if (is_variable(output)) return read_slot(output, after_write);
  return slots_.of(output);
}

std::vector<int> PlanBuilder::input_slots(const Operation& op) {
  std::vector<int> slots;
  for (size_t i = 0; i < op.inputs().size(); ++i) {
    const bool is_ref = static_cast<int>(i) < op.ref_inputs();
    slots.push_back(is_ref ? -1 : slot_of(op.inputs()[i], graph_.depends_on_write(op)));
  }
  return slots;
}

// The first of the operation's consecutive output slots. A fed output keeps the feed's slot; what the operation
// computes for it goes into one that nobody reads.
int PlanBuilder::output_slots(const Operation& op) {
  const int first = slots_.size();
  for (int i = 0; i < op.num_outputs(); ++i) {
    const int slot = slots_.add();
    if (!graph_.is_fed(op.output(i))) slots_.set(op.output(i), slot);
  }
  return first;
}

void PlanBuilder::place(std::unique_ptr<Instruction> instruction, const std::vector<int>& taken) {
  if (instruction->writes()) {
    if (parts_.first_write == parts_.end_of_writes) parts_.first_write = parts_.instructions.size();
    parts_.end_of_writes = parts_.instructions.size() + 1;
  }
  uses_.push_back({.taken = taken, .num_filled = slots_.size() - instruction->first_output()});
  parts_.instructions.push_back(std::move(instruction));
}

void PlanBuilder::add(const Operation& op) {
  resources_.check_device(op);
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
    parts_.constants.emplace_back(slot, Value(op.attr<Tensor>("value")));
  } else if (op.type() == "Identity" || is_alias(op)) {
    if (!graph_.is_fed(op.output())) slots_.set(op.output(), slot_of(op.inputs()[0], graph_.depends_on_write(op)));
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
  const int prediction = slots_.find(pair->prediction), target = slots_.find(pair->target);
  if (prediction < 0 || target < 0 || !checked_losses_.insert(pair->loss).second) return;
  place(std::make_unique<LossShapeCheck>(*pair, prediction, target, slots_.size()), {prediction, target});
}

void PlanBuilder::add_aten(const Operation& op) {
  add_loss_check(op);
  auto call = bind_aten_call({op.type(), op.name(), op.inputs(), op.attrs(), {}, {}});
  if (!call) throw NotFoundError(fmt::format("{}: this libtorch has no operator {}", op.name(), op.type()));
  const std::vector<int> inputs = input_slots(op);
  int first_buffer = 0;
  if (AtenInstruction::uses_buffers(op)) {
    first_buffer = parts_.num_buffers;
    parts_.num_buffers += op.num_outputs();
  }
  const int first_output = output_slots(op);
  place(std::make_unique<AtenInstruction>(op, *std::move(call), inputs, first_output, first_buffer,
                                          add_draw(parts_, op, resources_)),
        inputs);
}

void PlanBuilder::add_kernel(const Operation& op) {
  const Kernel* kernel = find_kernel(op.type());
  if (kernel == nullptr)
    throw UnimplementedError(fmt::format("{}: this session cannot run operations of type {}", op.name(), op.type()));
  add_loss_check(op);
  std::vector<VariableSlot*> variables;
  for (int i = 0; i < op.ref_inputs(); ++i) {
    variables.push_back(&variable_slot(op.inputs()[static_cast<size_t>(i)].op(), resources_, parts_));
  }
  const std::vector<int> inputs = input_slots(op);
  const int first_output = output_slots(op);
  place(std::make_unique<KernelInstruction>(op, *kernel, inputs, std::move(variables), first_output), inputs);
}

void PlanBuilder::add_assignment(const Operation& assign, const ComputedInPlace& computed) {
  VariableSlot& variable = variable_slot(assign.inputs()[0].op(), resources_, parts_);
  const std::vector<int> inputs = input_slots(computed.op);
  const int read = slots_.early_read(assign.inputs()[0]), value = slots_.add(), first_output = output_slots(assign);
  const int first_buffer = parts_.num_buffers;
  if (AtenInstruction::uses_buffers(computed.op)) parts_.num_buffers += computed.op.num_outputs();
  AssignInPlace::Parts parts{
      .variable = &variable, .read = read, .inputs = inputs, .value = value, .out = computed.out};
  parts.compute =
      std::make_unique<AtenInstruction>(computed.op, computed.call, inputs, value, first_buffer, std::nullopt);
  parts.assign = std::make_unique<KernelInstruction>(assign, *find_kernel("Assign"), std::vector<int>{-1, value},
                                                     std::vector<VariableSlot*>{&variable}, first_output);
  std::vector<int> taken = inputs;
  std::erase(taken, read);
  place(std::make_unique<AssignInPlace>(assign, assign.inputs()[0].shape(), std::move(parts), first_output), taken);
}

void PlanBuilder::add_exchange(const Operation& op) {
  const std::vector<int> inputs = input_slots(op);
  const ValuePlace to = op.num_outputs() == 0 ? ValuePlace::kHost : graph_.place_of(op.output());
  const int first_output = output_slots(op);
  place(make_exchange_instruction(op, inputs.empty() ? -1 : inputs[0], to, first_output), inputs);
}

// After the writes: whoever waits for a model that is ready looks again.
void PlanBuilder::add_change_of_restore() {
  if (!parts_.writes_variables()) return;
  for (const Operation& op : graph_.operations()) {
    if (op.type() != "RestoreV2") continue;
    place(std::make_unique<CountChange>(op, slots_.size()), {});
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
  place(std::make_unique<HostInstruction>(op, find_host_kernel(op.type()), inputs, std::move(resources),
                                          std::move(places), first_output, add_draw(parts_, op, resources_)),
        inputs);
}

void PlanBuilder::add_fetches() {
  for (const Fetch::Target& fetch : request_.fetches) {
    if (!fetch.is_operation() && fetch.output().dtype() == kResource) {
      throw InvalidArgumentError(
          fmt::format("{} cannot be fetched: it is a handle to a {}", fetch.output().name(), fetch.op.type()));
    }
    int slot = -1;
    if (!fetch.is_operation()) {
      slot = graph_.is_fed(fetch.output()) ? slots_.of(fetch.output()) : slot_of(fetch.output(), false);
    }
    parts_.fetches.push_back({slot, /*may_move=*/false});
  }
}

}  // namespace longhaul
