#include "longhaul/placement/run_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "longhaul/base/error.h"
#include "longhaul/placement/bundles.h"
#include "longhaul/placement/colocation_groups.h"

namespace longhaul {
namespace {

// The operations of one task, and what goes before each and after each.
struct TaskOrder {
  std::vector<Operation> operations;
  std::unordered_map<Operation, size_t, OperationHash> positions;
  size_t first_write = 0, end_of_writes = 0;  // equal: it writes nothing
  std::vector<int> sent_first;
  std::vector<std::vector<int>> received_before, sent_after;

  bool writes_at(size_t position) const { return first_write <= position && position < end_of_writes; }
};

class Splitter {
 public:
  explicit Splitter(const SharedOrder& order) : order_(order), tasks_(order.tasks().size()) {
    split_.tasks = order.tasks();
  }

  RunSplit split() && {
    for (const Operation& op : order_.operations()) add_operation(op);
    for (TaskOrder& task : tasks_) {
      task.received_before.resize(task.operations.size());
      task.sent_after.resize(task.operations.size());
    }
    for (const Operation& op : order_.operations()) add_transfers(op);
    for (const TaskOrder& task : tasks_) split_.parts.push_back(steps_of(task));
    bundle_transfers(split_);
    return std::move(split_);
  }

 private:
  using Key = std::tuple<const Node*, int, bool, int>;  // operation, output (-1: none), after the writes, to

  TaskOrder& task_of(const Operation& op) { return tasks_[static_cast<size_t>(order_.task_of(op))]; }

  void add_operation(const Operation& op) {
    TaskOrder& task = task_of(op);
    const size_t position = task.operations.size();
    task.positions.emplace(op, position);
    task.operations.push_back(op);
    if (!writes_variable(op)) return;
    if (task.first_write == task.end_of_writes) task.first_write = position;
    task.end_of_writes = position + 1;
  }

  void add_transfers(const Operation& op) {
    for (size_t i = 0; i < op.inputs().size(); ++i) {
      const Output& input = op.inputs()[i];
      if (may_be_divided(op)) {
        add_report(op, input.op());
      } else if (static_cast<int>(i) < op.ref_inputs()) {
        check_reference(op, input.op());
      } else if (!order_.is_fed(input) && order_.task_of(input.op()) != order_.task_of(op)) {
        add_value(op, input);
      }
    }
    for (const Operation& source : order_.waits_for(op)) {
      transfer({.after = source, .after_write = order_.after_write(source) || writes_variable(source)}, -1, op);
    }
  }

  void check_reference(const Operation& op, const Operation& variable) const {
    if (order_.task_of(variable) == order_.task_of(op)) return;
    throw InternalError(fmt::format("{} is not on the task of {}", op.name(), variable.name()));
  }

  // Its task's part of the report, once.
  void add_report(const Operation& report, const Operation& variable) {
    if (order_.task_of(variable) == order_.task_of(report)) return;
    const Operation first = first_of_task(report, variable);
    if (first != variable) return;
    transfer({.value = report.output(), .after = first, .report = report, .after_write = reads_late(report, first)},
             key_of_report(report), report);
  }

  // Of the report's variables on that task.
  Operation first_of_task(const Operation& report, const Operation& variable) const {
    for (const Output& input : report.inputs()) {
      if (order_.task_of(input.op()) == order_.task_of(variable)) return input.op();
    }
    return variable;
  }

  // Whether it reads any of the variables on that task after the run has written them.
  bool reads_late(const Operation& report, const Operation& first) const {
    return std::any_of(report.inputs().begin(), report.inputs().end(), [&](const Output& input) {
      return order_.task_of(input.op()) == order_.task_of(first) && order_.reads_late(report, input.op());
    });
  }

  void add_value(const Operation& op, const Output& value) {
    const Operation source = value.op();
    if (!stands_for_value(source)) {
      const bool after_write = order_.after_write(source) || writes_variable(source);
      transfer({.value = value, .after = source, .after_write = after_write}, value.index(), op);
    } else if (source.type() == "VariableV2") {
      transfer({.value = value, .after = source, .after_write = order_.reads_late(op, source)}, value.index(), op);
    }
  }

  // The first time, on both sides; a task that has it already gets it no second time.
  void transfer(Transfer transfer, int output, const Operation& user) {
    transfer.from = order_.task_of(transfer.after);
    transfer.to = order_.task_of(user);
    const Key key(transfer.after.node(), output, transfer.after_write, transfer.to);
    if (!sent_.emplace(key, split_.transfers.size()).second) return;
    const int number = static_cast<int>(split_.transfers.size());
    split_.transfers.push_back(transfer);
    send(transfer, number);
    TaskOrder& to = tasks_[static_cast<size_t>(transfer.to)];
    const size_t used = to.positions.at(user);
    to.received_before[to.writes_at(used) ? to.first_write : used].push_back(number);
  }

  void send(const Transfer& transfer, int number) {
    TaskOrder& from = tasks_[static_cast<size_t>(transfer.from)];
    const auto computed = from.positions.find(transfer.after);
    if (computed == from.positions.end() && !transfer.after_write) {
      from.sent_first.push_back(number);
    } else if (computed != from.positions.end() && !from.writes_at(computed->second)) {
      from.sent_after[computed->second].push_back(number);
    } else {
      from.sent_after[from.end_of_writes - 1].push_back(number);
    }
  }

  static void add(PartStep::Kind kind, const std::vector<int>& transfers, std::vector<PartStep>& steps) {
    for (int number : transfers) steps.push_back({.kind = kind, .transfer = number});
  }

  static std::vector<PartStep> steps_of(const TaskOrder& task) {
    std::vector<PartStep> steps;
    add(PartStep::kSend, task.sent_first, steps);
    for (size_t i = 0; i < task.operations.size(); ++i) {
      add(PartStep::kReceive, task.received_before[i], steps);
      steps.push_back({.kind = PartStep::kRun, .op = task.operations[i]});
      add(PartStep::kSend, task.sent_after[i], steps);
    }
    return steps;
  }

  const SharedOrder& order_;
  std::vector<TaskOrder> tasks_;
  std::map<Key, size_t> sent_;
  RunSplit split_;
};

}  // namespace

int key_of_report(const Operation& report) {
  return -2 - report.id();
}

RunSplit split_run(const SharedOrder& order) {
  return Splitter(order).split();
}

}  // namespace longhaul
