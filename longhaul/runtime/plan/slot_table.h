#pragma once

#include <unordered_map>

#include "longhaul/graph/operation.h"

namespace longhaul {

// Numbers the slots of a plan, and knows the one that each value is in. Variables have none of their own: what is read
// of one before any write is in the slot of that read.
class SlotTable {
 public:
  int size() const { return size_; }
  int add() { return size_++; }

  void set(const Output& value, int slot) { slots_[value] = slot; }
  int of(const Output& value) const { return slots_.at(value); }
  // -1: it has none.
  int find(const Output& value) const {
    const auto found = slots_.find(value);
    return found == slots_.end() ? -1 : found->second;
  }

  bool is_read_early(const Output& variable) const { return early_reads_.contains(variable); }
  void set_early_read(const Output& variable, int slot) { early_reads_[variable] = slot; }
  int early_read(const Output& variable) const { return early_reads_.at(variable); }

 private:
  int size_ = 0;
  std::unordered_map<Output, int, OutputHash> slots_;
  std::unordered_map<Output, int, OutputHash> early_reads_;
};

}  // namespace longhaul
