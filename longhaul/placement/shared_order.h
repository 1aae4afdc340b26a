#pragma once

#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "longhaul/placement/placer.h"
#include "longhaul/session/run_order.h"

namespace longhaul {

// The one order of a run that several tasks share. Each of them runs its part of it in this order, so nobody waits in a
// circle: of all that is not done yet, what comes first can be done.
//
//   what no write precedes -> writes, and what they need of other writes -> what waits for another task's writes
//
// On one task this is RunOrder's. No task waits for another between its writes: all writes of a run happen together,
// when every task has come to its first one. So a write, and the read of a variable for it, follow another task's write
// without a message; and what needs a value that another task computes after writing comes last. Immutable.
class SharedOrder {
 public:
  // InvalidArgumentError: a write needs what another task computes after a write, so the run must be split into two.
  SharedOrder(const RunOrder& run, const Placement& placement);

  const std::vector<std::string>& tasks() const { return tasks_; }  // sorted; a task's number is its place in the list
  int task_of(const Operation& op) const { return task_numbers_.at(op); }

  // Those that do something: without variables, resources, constants and no-ops. In order.
  const std::vector<Operation>& operations() const { return order_; }
  // The operations of other tasks that must have run before this one, also by way of no-ops; of each task the last.
  const std::vector<Operation>& waits_for(const Operation& op) const;

  bool is_fed(const Output& output) const { return run_.is_fed(output); }
  bool after_write(const Operation& op) const { return run_.depends_on_write(op); }
  bool is_late(const Operation& op) const { return late_.contains(op); }
  // Whether the operation reads that variable after the run's writes. A variable that the run does not write is read at
  // the start for other tasks.
  bool reads_late(const Operation& op, const Operation& variable) const;

 private:
  using OperationSet = std::unordered_set<Operation, OperationHash>;
  // The positions of the last operations: of each task, of each kind (before a write, a write, after one), and of those
  // of a kind that are ordered apart from the others.
  using Frontier = std::map<std::tuple<int, int, size_t>, size_t>;
  // Who, of those that a no-op precedes, writes or leads to a write.
  struct Led {
    std::unordered_set<int> writing_tasks;
    bool others = false;
  };

  void number_tasks(const Placement& placement);
  std::vector<Operation> predecessors(const Operation& op) const;
  void find_waits();
  void add_to(Frontier& frontier, const Operation& op, size_t position);
  bool is_on_the_way_to_write(const Operation& op) const;
  void keep_waits(const Operation& op, const Frontier& frontier);
  void find_what_leads_to_writes();
  bool leads_by_control(const Operation& op, const Operation& user) const;
  void find_late();
  Operation late_source(const Operation& op) const;
  bool comes_from_another_write(const Operation& op, const Operation& source) const;
  void order();

  const RunOrder& run_;
  const std::vector<Operation> plain_;  // RunOrder::ordered()
  std::vector<std::string> tasks_;
  std::unordered_map<Operation, int, OperationHash> task_numbers_;
  std::unordered_map<Operation, Frontier, OperationHash> before_;  // of operations that do nothing
  std::unordered_map<Operation, std::vector<Operation>, OperationHash> waits_;
  std::unordered_map<Operation, Led, OperationHash> led_;
  OperationSet written_, leads_, late_;
  std::vector<Operation> order_;
};

// Whether the operation stands for something and is never run itself: a variable, a resource, a constant.
bool stands_for_value(const Operation& op);

}  // namespace longhaul
