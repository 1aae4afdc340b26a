#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "longhaul/placement/shared_order.h"

namespace longhaul {

// What one task sends to another: a value, or only the fact that an operation has run.
struct Transfer {
  Output value;     // invalid: no value
  Operation after;  // what computes the value, or has run
  int from = 0, to = 0;
  Operation report;          // valid: the sender's part of that report on variables, of which `after` is one
  bool after_write = false;  // computed, or read from a variable, after the run's writes
  int bundle = -1, slot = -1;
  bool has_value() const { return value.valid(); }
};

// Transfers that go as one message.
struct Bundle {
  int from = 0, to = 0;
  int values = 0;  // 0: a message without values
};

// What a task does, one after the other.
struct PartStep {
  enum Kind { kRun, kSend, kReceive } kind = kRun;
  Operation op;       // kRun
  int transfer = -1;  // kSend, kReceive
  bool operator==(const PartStep&) const = default;
};

// A run, divided among tasks: what each of them does, and what they send each other.
//
// Each task runs its operations in the shared order. A value goes to a task once, however many operations there use it;
// it is sent right after it was computed, and received right before it is first used. But nothing is sent or received
// between a task's writes: what is needed there is received before them, and what is computed there sent after them. A
// variable that others read is sent first of all, and so is a task's part of a report on variables of several tasks
// (may_be_divided), which the task of the report joins. Constants are not sent; each task has those that it uses.
struct RunSplit {
  std::vector<std::string> tasks;            // as in SharedOrder
  std::vector<std::vector<PartStep>> parts;  // of each task; may be empty
  std::vector<Transfer> transfers;
  std::vector<Bundle> bundles;  // by number
};

// Where transfers are told apart by the number of an output: what a report says of a variable is not the variable's
// value.
int key_of_report(const Operation& report);

// InternalError: an operation is not on the device of its variable or resource.
RunSplit split_run(const SharedOrder& order);

}  // namespace longhaul
