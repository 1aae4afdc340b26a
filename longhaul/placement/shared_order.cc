#include "longhaul/placement/shared_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/placement/colocation_groups.h"

namespace longhaul {
namespace {

enum Kind { kBefore, kWrite, kAfter };

// What precedes it precedes its users; that is all.
bool does_nothing(const Operation& op, const RunOrder& run) {
  return op.type() == "NoOp" || stands_for_value(op) || (op.type() == "Placeholder" && run.is_fed(op.output()));
}

// Nobody can tell when it ran.
bool is_pure_after_write(const Operation& op, const RunOrder& run) {
  return run.depends_on_write(op) && op.traits() == kPure;
}

Kind kind_of(const Operation& op, const RunOrder& run) {
  return writes_variable(op) ? kWrite : run.depends_on_write(op) ? kAfter : kBefore;
}

// Reads a variable at the start of the run, and nothing else.
bool is_early_read(const Operation& op, const RunOrder& run) {
  return op.type() == "Identity" && op.inputs()[0].op().type() == "VariableV2" && op.control_inputs().empty() &&
         !run.depends_on_write(op);
}

}  // namespace

bool stands_for_value(const Operation& op) {
  return op.type() == "VariableV2" || op.type() == "Const" || (op.traits() & kIsResource) != 0;
}

SharedOrder::SharedOrder(const RunOrder& run, const Placement& placement) : run_(run), plain_(run.ordered()) {
  number_tasks(placement);
  for (const Operation& op : plain_) {
    if (!writes_variable(op)) continue;
    for (int i = 0; i < op.ref_inputs(); ++i) written_.insert(op.inputs()[static_cast<size_t>(i)].op());
  }
  find_what_leads_to_writes();
  find_waits();
  find_late();
  order();
}

void SharedOrder::number_tasks(const Placement& placement) {
  tasks_ = placement.tasks();
  for (const Operation& op : plain_) {
    const auto task = std::lower_bound(tasks_.begin(), tasks_.end(), placement.task_of(op));
    task_numbers_.emplace(op, static_cast<int>(task - tasks_.begin()));
  }
  for (const Operation& op : plain_) {  // a variable that is fed is not needed, but may be written
    for (int i = 0; i < op.ref_inputs(); ++i) {
      task_numbers_.emplace(op.inputs()[static_cast<size_t>(i)].op(), task_of(op));
    }
  }
}

// What follows writes is put in another order later, so all of it is kept; early reads are put first.
void SharedOrder::add_to(Frontier& frontier, const Operation& op, size_t position) {
  const Kind kind = kind_of(op, run_);
  const size_t apart = kind == kAfter ? position + 1 : is_early_read(op, run_) ? 1 : 0;
  size_t& last = frontier[{task_of(op), kind, apart}];
  last = std::max(last, position);
}

// By control edges, also by way of constants: a constant has its value at any time, but what precedes it precedes its
// users.
std::vector<Operation> SharedOrder::predecessors(const Operation& op) const {
  std::vector<Operation> found = op.control_inputs();
  for (const Output& input : op.inputs()) {
    if (input.op().type() == "Const" && !run_.is_fed(input)) found.push_back(input.op());
  }
  return found;
}

void SharedOrder::find_waits() {
  std::unordered_map<Operation, size_t, OperationHash> positions;
  for (size_t i = 0; i < plain_.size(); ++i) {
    const Operation& op = plain_[i];
    positions.emplace(op, i);
    Frontier frontier;
    for (const Operation& control : predecessors(op)) {
      if (!does_nothing(control, run_)) {
        add_to(frontier, control, positions.at(control));
      } else if (const auto before = before_.find(control); before != before_.end()) {
        for (const auto& [key, position] : before->second) add_to(frontier, plain_[position], position);
      }
    }
    if (frontier.empty()) continue;
    if (does_nothing(op, run_)) {
      before_.emplace(op, std::move(frontier));
    } else {
      keep_waits(op, frontier);
    }
  }
}

// A write, or what only computes what a write takes: as a moving average's read of its variable, after the step. What
// it takes of other tasks are its inputs, and what its own task wrote before stands before it in the order, so the
// control edge from another task's write decides nothing.
bool SharedOrder::is_on_the_way_to_write(const Operation& op) const {
  return writes_variable(op) || (leads_.contains(op) && is_pure_after_write(op, run_));
}

void SharedOrder::keep_waits(const Operation& op, const Frontier& frontier) {
  for (const auto& [key, position] : frontier) {
    const Operation& source = plain_[position];
    if (task_of(source) == task_of(op)) continue;
    const bool wrote = writes_variable(source) || is_pure_after_write(source, run_);
    if (wrote && is_on_the_way_to_write(op)) continue;
    waits_[op].push_back(source);
  }
}

const std::vector<Operation>& SharedOrder::waits_for(const Operation& op) const {
  static const std::vector<Operation> none;
  const auto it = waits_.find(op);
  return it == waits_.end() ? none : it->second;
}

bool SharedOrder::leads_by_control(const Operation& op, const Operation& user) const {
  const bool may_be_dropped = is_pure_after_write(op, run_);
  if (!does_nothing(user, run_)) {
    const bool dropped = may_be_dropped && writes_variable(user) && task_of(user) != task_of(op);
    return leads_.contains(user) && !dropped;
  }
  const auto led = led_.find(user);
  if (led == led_.end()) return false;
  const auto& writing = led->second.writing_tasks;
  return led->second.others || (may_be_dropped ? writing.contains(task_of(op)) : !writing.empty());
}

// From the end: users come after what they use.
void SharedOrder::find_what_leads_to_writes() {
  const auto lead = [&](const Operation& source, const Operation& user) {
    if (!does_nothing(source, run_)) {
      if (leads_by_control(source, user)) leads_.insert(source);
    } else if (does_nothing(user, run_)) {
      if (const auto led = led_.find(user); led != led_.end()) {
        const Led of_user = led->second;
        led_[source].others |= of_user.others;
        led_[source].writing_tasks.insert(of_user.writing_tasks.begin(), of_user.writing_tasks.end());
      }
    } else if (writes_variable(user)) {
      led_[source].writing_tasks.insert(task_of(user));
    } else if (leads_.contains(user)) {
      led_[source].others = true;
    }
  };
  for (auto op = plain_.rbegin(); op != plain_.rend(); ++op) {
    if (writes_variable(*op)) leads_.insert(*op);
    for (const Operation& control : predecessors(*op)) lead(control, *op);
    if (!leads_.contains(*op)) continue;
    for (const Output& input : op->inputs()) {
      if (!run_.is_fed(input)) leads_.insert(input.op());
    }
  }
}

bool SharedOrder::reads_late(const Operation& op, const Operation& variable) const {
  if (!run_.depends_on_write(op)) return false;
  return task_of(op) == task_of(variable) || written_.contains(variable);
}

bool SharedOrder::comes_from_another_write(const Operation& op, const Operation& source) const {
  if (stands_for_value(source)) {
    return source.type() == "VariableV2" && task_of(source) != task_of(op) && reads_late(op, source);
  }
  return task_of(source) != task_of(op) && kind_of(source, run_) != kBefore;
}

// What the operation has to wait for after its own task's writes; invalid: nothing.
Operation SharedOrder::late_source(const Operation& op) const {
  const auto is_late_source = [&](const Operation& source) {
    return late_.contains(source) || comes_from_another_write(op, source);
  };
  const size_t first = may_be_divided(op) ? 0 : static_cast<size_t>(op.ref_inputs());
  for (size_t i = first; i < op.inputs().size(); ++i) {
    if (!run_.is_fed(op.inputs()[i]) && is_late_source(op.inputs()[i].op())) return op.inputs()[i].op();
  }
  for (const Operation& source : waits_for(op)) {
    if (is_late_source(source)) return source;
  }
  return {};
}

void SharedOrder::find_late() {
  OperationSet after_late;  // no-ops
  for (const Operation& op : plain_) {
    Operation source = does_nothing(op, run_) ? Operation() : late_source(op);
    for (const Operation& control : predecessors(op)) {
      const bool late = late_.contains(control) || after_late.contains(control);
      if (late && !source && !writes_variable(op)) source = control;  // of a write: see leads_by_control
    }
    if (!source) continue;
    if (does_nothing(op, run_)) {
      after_late.insert(op);
      continue;
    }
    if (leads_.contains(op)) {
      throw InvalidArgumentError(fmt::format(
          "{} ({}) on {} needs {} ({}) on {}, and this run changes variables before and after it: split it into two "
          "runs",
          op.name(), op.type(), tasks_[static_cast<size_t>(task_of(op))], source.name(), source.type(),
          tasks_[static_cast<size_t>(task_of(source))]));
    }
    late_.insert(op);
  }
}

void SharedOrder::order() {
  for (const Operation& op : plain_) {
    if (!does_nothing(op, run_) && !late_.contains(op)) order_.push_back(op);
  }
  std::stable_partition(order_.begin(), order_.end(), [&](const Operation& op) { return is_early_read(op, run_); });
  for (const Operation& op : plain_) {
    if (late_.contains(op)) order_.push_back(op);
  }
}

}  // namespace longhaul
