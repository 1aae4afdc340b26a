#include "longhaul/runtime/plan/plan_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "longhaul/graph/builtin/random_state.h"
#include "longhaul/runtime/plan/loss_shapes.h"
#include "longhaul/session/needed_operations.h"

namespace longhaul {
namespace {

bool is_variable(const Output& output) {
  return output.op().type() == "VariableV2";
}
bool writes(const Operation& op) {
  return (op.traits() & kWritesVariable) != 0;
}
bool runs_on_host(const Operation& op) {
  return find_host_kernel(op.type()) != nullptr;
}

VariableSlot& variable_slot(const Operation& variable, SessionResources& resources) {
  VariableSlot& slot = resources.variables().slot(variable.name());
  const auto* access = variable.find_attr<std::shared_ptr<HostFunction>>("program_value");
  const bool* initialized = variable.find_attr<bool>("always_initialized");
  if (access != nullptr) slot.set_program_value(*access, initialized != nullptr && *initialized);
  return slot;
}

// A write that may fail in the middle of a run, by what the program does in it.
bool is_program_step(const Operation& op) {
  return op.type() == "ProgramStep";
}

// Operations that only pass on a value: their output is their input's slot.
bool is_alias(const Operation& op) {
  return (op.type() == "Identity" && !is_variable(op.inputs()[0])) || op.type() == "PlaceholderWithDefault";
}

}  // namespace

PlanParts PlanBuilder::build() && {
  for (const Output& feed : request_.feeds) fed_.insert(feed);
  parts_.is_snapshot = request_.options.snapshot;
  find_needed();
  find_what_follows_writes();
  find_places();
  add_feeds();
  add_reads();
  for (const Operation& op : ordered()) add(op);
  add_fetches();
  refuse_waits_between_writes();
  find_constants();
  find_moves();
  find_written();
  find_checks();
  find_last_uses();
  parts_.only_host = std::all_of(parts_.instructions.begin(), parts_.instructions.end(),
                                 [](const auto& instruction) { return instruction->as_host() != nullptr; });
  find_single_call();
  return std::move(parts_);
}

void PlanBuilder::find_needed() {
  std::vector<Operation> targets;
  for (const Fetch::Target& fetch : request_.fetches) {
    if (fetch.is_operation() || !is_fed(fetch.output())) targets.push_back(fetch.op);
  }
  needed_ = needed_operations(targets, request_.feeds);
  std::sort(needed_.begin(), needed_.end(), [](const Operation& a, const Operation& b) { return a.id() < b.id(); });
}

// What goes from one operation without libtorch to the next, or to a fetch, is left as it is.
void PlanBuilder::find_places() {
  for (const Operation& op : needed_) {
    if (runs_on_host(op)) continue;
    for (const Output& input : op.inputs()) for_libtorch_.insert(input);
  }
}

bool PlanBuilder::depends_on_any_of(const Operation& op, const OperationSet& set) const {
  for (const Output& input : op.inputs()) {
    if (!is_fed(input) && set.contains(input.op())) return true;
  }
  return std::any_of(op.control_inputs().begin(), op.control_inputs().end(),
                     [&](const Operation& control) { return set.contains(control); });
}

void PlanBuilder::find_what_follows_writes() {
  OperationSet write_or_after;
  for (const Operation& op : needed_) {
    const bool after = depends_on_any_of(op, write_or_after);
    if (after) after_write_.insert(op);
    if (after || writes(op)) write_or_after.insert(op);
  }
  const auto write = std::find_if(needed_.begin(), needed_.end(), writes);
  if (parts_.is_snapshot && write != needed_.end()) {
    throw InvalidArgumentError(
        fmt::format("a snapshot run must not write variables, and {} ({}) does: fetch what is read in a run of its own",
                    write->name(), write->type()));
  }
}

// First what no write precedes; then, as long as there are writes to come, writes where they are ready and else the
// first operation that is; then the rest. Of the writes a step of the program's is the first: if it fails, the others
// are not made. Graphs are built in an order of dependencies, so order of creation is one to fall back on.
std::vector<Operation> PlanBuilder::ordered() const {
  std::vector<Operation> order, rest;
  OperationSet waiting;
  for (const Operation& op : needed_) {
    if (depends_on_write(op) || writes(op)) {
      rest.push_back(op);
      waiting.insert(op);
    } else {
      order.push_back(op);
    }
  }
  while (!rest.empty()) {
    const auto ready = [&](const Operation& op) { return !depends_on_any_of(op, waiting); };
    auto next =
        std::find_if(rest.begin(), rest.end(), [&](const Operation& op) { return is_program_step(op) && ready(op); });
    if (next == rest.end())
      next = std::find_if(rest.begin(), rest.end(), [&](const Operation& op) { return writes(op) && ready(op); });
    if (next == rest.end()) next = std::find_if(rest.begin(), rest.end(), ready);
    order.push_back(*next);
    waiting.erase(*next);
    rest.erase(next);
  }
  return order;
}

void PlanBuilder::add_feeds() {
  for (const Output& feed : request_.feeds) {
    const int slot = new_slot();
    slots_[feed] = slot;
    parts_.feeds.push_back({feed, slot, place_of(feed)});
  }
}

// The variables that are read before any write, each once, at the start of the plan.
void PlanBuilder::add_reads() {
  const auto read_early = [&](const Output& variable) {
    if (is_fed(variable) || early_reads_.contains(variable)) return;
    const int slot = new_slot();
    early_reads_[variable] = slot;
    place(std::make_unique<ReadInstruction>(variable.op(), variable_slot(variable.op(), resources_), slot), {});
  };
  for (const Operation& op : needed_) {
    if (depends_on_write(op)) continue;
    if (op.type() == "RandomState" && !is_fed(op.output())) read_random_state(op);
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

// Which of the frame's draws the operation takes; none if it is not random.
std::optional<size_t> PlanBuilder::draw_of(const Operation& op) {
  if (!has_random_stream(op)) return std::nullopt;
  parts_.random_streams.push_back(resources_.random_stream(op));
  return parts_.random_streams.size() - 1;
}

int PlanBuilder::read_slot(const Output& variable, bool after_write) {
  if (is_fed(variable)) return slots_.at(variable);
  if (!after_write) return early_reads_.at(variable);
  const int slot = new_slot();
  place(std::make_unique<ReadInstruction>(variable.op(), variable_slot(variable.op(), resources_), slot), {});
  return slot;
}

int PlanBuilder::slot_of(const Output& output, bool after_write) {
  if (is_variable(output)) return read_slot(output, after_write);
  return slots_.at(output);
}

std::vector<int> PlanBuilder::input_slots(const Operation& op) {
  std::vector<int> slots;
  for (size_t i = 0; i < op.inputs().size(); ++i) {
    const bool is_ref = static_cast<int>(i) < op.ref_inputs();
    slots.push_back(is_ref ? -1 : slot_of(op.inputs()[i], depends_on_write(op)));
  }
  return slots;
}

// The first of the operation's consecutive output slots. A fed output keeps the feed's slot; what the operation
// computes for it goes into one that nobody reads.
int PlanBuilder::output_slots(const Operation& op) {
  const int first = num_slots_;
  for (int i = 0; i < op.num_outputs(); ++i) {
    const int slot = new_slot();
    if (!is_fed(op.output(i))) slots_[op.output(i)] = slot;
  }
  return first;
}

void PlanBuilder::place(std::unique_ptr<Instruction> instruction, const std::vector<int>& uses) {
  if (instruction->writes()) {
    if (parts_.first_write == parts_.end_of_writes) parts_.first_write = parts_.instructions.size();
    parts_.end_of_writes = parts_.instructions.size() + 1;
  }
  num_results_.push_back(num_slots_ - instruction->first_output());
  parts_.instructions.push_back(std::move(instruction));
  uses_.push_back(uses);
}

void PlanBuilder::add(const Operation& op) {
  resources_.check_device(op);
  if (op.type() == "VariableV2" || op.type() == "NoOp" || (op.traits() & kIsResource) != 0) return;
  if (op.type() == "Placeholder" && is_fed(op.output())) return;  // it is here for its control edges
  if (op.type() == "Placeholder") {
    throw InvalidArgumentError(
        fmt::format("You must feed a value for placeholder tensor '{}' with dtype {} and shape {}", op.name(),
                    dtype_name(op.output().dtype()), op.output().shape().to_string()));
  }
  if (op.type() == "Const") {
    const int slot = output_slots(op);
    parts_.constants.emplace_back(slot, Value(op.attr<Tensor>("value")));
  } else if (op.type() == "Identity" || is_alias(op)) {
    if (!is_fed(op.output())) slots_[op.output()] = slot_of(op.inputs()[0], depends_on_write(op));
  } else if (op.type() == "RandomState") {
    if (depends_on_write(op)) read_random_state(op);
  } else if (op.type().starts_with("aten::")) {
    add_aten(op);
  } else if (runs_on_host(op)) {
    add_host(op);
  } else {
    add_kernel(op);
  }
}

// Before a loss of a prediction and a target, or what comes first of its gradient, if their shapes may differ.
void PlanBuilder::add_loss_check(const Operation& op) {
  const Operation forward = forward_of(op);
  const std::optional<LossOfPair> pair = loss_of_pair(forward ? forward : op);
  if (!pair || (pair->prediction.shape().num_elements() >= 0 && pair->target.shape().num_elements() >= 0)) return;
  const auto prediction = slots_.find(pair->prediction), target = slots_.find(pair->target);
  if (prediction == slots_.end() || target == slots_.end() || !checked_losses_.insert(pair->loss).second) return;
  place(std::make_unique<LossShapeCheck>(*pair, prediction->second, target->second, num_slots_),
        {prediction->second, target->second});
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
  place(std::make_unique<AtenInstruction>(op, *std::move(call), inputs, first_output, first_buffer, draw_of(op)),
        inputs);
}

void PlanBuilder::add_kernel(const Operation& op) {
  const Kernel* kernel = find_kernel(op.type());
  if (kernel == nullptr)
    throw UnimplementedError(fmt::format("{}: operations of type {} cannot run here", op.name(), op.type()));
  add_loss_check(op);
  std::vector<VariableSlot*> variables;
  for (int i = 0; i < op.ref_inputs(); ++i) {
    variables.push_back(&variable_slot(op.inputs()[static_cast<size_t>(i)].op(), resources_));
  }
  const std::vector<int> inputs = input_slots(op);
  const int first_output = output_slots(op);
  place(std::make_unique<KernelInstruction>(op, *kernel, inputs, std::move(variables), first_output), inputs);
}

void PlanBuilder::add_host(const Operation& op) {
  HostInstruction::Resources resources;
  for (int i = 0; i < op.ref_inputs(); ++i) {
    resources.push_back(resource_of(op.inputs()[static_cast<size_t>(i)].op(), resources_.host_resources()));
  }
  const std::vector<int> inputs = input_slots(op);
  std::vector<ValuePlace> places;
  for (int i = 0; i < op.num_outputs(); ++i) places.push_back(place_of(op.output(i)));
  const int first_output = output_slots(op);
  place(std::make_unique<HostInstruction>(op, find_host_kernel(op.type()), inputs, std::move(resources),
                                          std::move(places), first_output, draw_of(op)),
        inputs);
}

// Nobody may wait inside the gate: snapshots would wait, too.
void PlanBuilder::refuse_waits_between_writes() const {
  for (size_t i = parts_.first_write; i < parts_.end_of_writes; ++i) {
    const Operation& op = parts_.instructions[i]->op();
    if ((op.traits() & kMayWait) == 0) continue;
    throw InvalidArgumentError(
        fmt::format("{} ({}) may wait, and this run changes variables both before and after it; make two runs of it",
                    op.name(), op.type()));
  }
}

void PlanBuilder::add_fetches() {
  for (const Fetch::Target& fetch : request_.fetches) {
    if (!fetch.is_operation() && fetch.output().dtype() == kResource) {
      throw InvalidArgumentError(
          fmt::format("{} cannot be fetched: it is a handle on a {}", fetch.output().name(), fetch.op.type()));
    }
    int slot = -1;
    if (!fetch.is_operation()) {
      slot = is_fed(fetch.output()) ? slots_.at(fetch.output()) : slot_of(fetch.output(), false);
    }
    parts_.fetches.push_back({slot, /*may_move=*/false});
  }
}

void PlanBuilder::find_constants() {
  parts_.is_constant.assign(static_cast<size_t>(num_slots_), false);
  for (const auto& [slot, value] : parts_.constants) parts_.is_constant[static_cast<size_t>(slot)] = true;
}

// What several fetches give is moved into the last one's result.
void PlanBuilder::find_moves() {
  for (auto fetch = parts_.fetches.begin(); fetch != parts_.fetches.end(); ++fetch) {
    const bool again = std::any_of(fetch + 1, parts_.fetches.end(),
                                   [&](const PlanParts::Fetched& later) { return later.slot == fetch->slot; });
    fetch->may_move = fetch->slot >= 0 && !again && !parts_.is_constant[static_cast<size_t>(fetch->slot)];
  }
}

// Each once, in the order of their addresses.
void PlanBuilder::find_written() {
  std::vector<VariableSlot*>& all = parts_.written;
  for (size_t i = parts_.first_write; i < parts_.end_of_writes; ++i) {
    const auto written = parts_.instructions[i]->written();
    all.insert(all.end(), written.begin(), written.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

void PlanBuilder::find_checks() {
  std::unordered_set<const VariableSlot*> written_before;
  for (size_t i = parts_.first_write; i < parts_.end_of_writes; ++i) {
    const Instruction& instruction = *parts_.instructions[i];
    if (instruction.written().empty()) continue;
    bool first = !depends_on_write(instruction.op());
    for (const VariableSlot* variable : instruction.written()) first &= written_before.insert(variable).second;
    if (first) parts_.checks_first.push_back(i);
  }
}

// Each slot is emptied after its last use, so that before the gate nothing holds a variable's bytes any more; what is
// used last by an instruction may be moved into it.
void PlanBuilder::find_last_uses() {
  std::vector<bool> needed_later = parts_.is_constant;
  for (const auto& [slot, may_move] : parts_.fetches) {
    if (slot >= 0) needed_later[static_cast<size_t>(slot)] = true;
  }
  for (size_t i = parts_.instructions.size(); i-- > 0;) {
    Instruction& instruction = *parts_.instructions[i];
    for (int slot = instruction.first_output(); slot < instruction.first_output() + num_results_[i]; ++slot) {
      if (!needed_later[static_cast<size_t>(slot)]) instruction.release_after(slot);
    }
    for (int slot : uses_[i]) {
      if (slot < 0 || needed_later[static_cast<size_t>(slot)]) continue;
      needed_later[static_cast<size_t>(slot)] = true;
      instruction.release_after(slot);
      instruction.allow_move(slot);
    }
  }
}

void PlanBuilder::find_single_call() {
  if (parts_.instructions.size() != 1 || !parts_.only_host || parts_.is_snapshot || !parts_.random_streams.empty())
    return;
  PlanParts::SingleCall single{.instruction = parts_.instructions[0]->as_host()};
  for (int slot : single.instruction->inputs()) {
    const auto feed =
        std::find_if(parts_.feeds.begin(), parts_.feeds.end(), [&](const auto& fed) { return fed.slot == slot; });
    if (slot >= 0 && feed == parts_.feeds.end()) return;
    single.feeds.push_back(slot < 0 ? -1 : static_cast<int>(feed - parts_.feeds.begin()));
  }
  const int num_outputs = single.instruction->op().num_outputs();
  for (const auto& [slot, may_move] : parts_.fetches) {
    const int output = slot < 0 ? -1 : slot - single.instruction->first_output();
    if (slot >= 0 && (output < 0 || output >= num_outputs)) return;
    single.outputs.push_back(output);
  }
  std::vector<int> in_order(static_cast<size_t>(num_outputs));
  std::iota(in_order.begin(), in_order.end(), 0);
  single.all_in_order = single.outputs == in_order;
  parts_.single_call = std::move(single);
}

}  // namespace longhaul
