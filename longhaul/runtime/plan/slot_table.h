#pragma once

#include <c10/core/Device.h>

#include <unordered_map>
#include <vector>

#include "longhaul/graph/operation.h"

namespace longhaul {

// Numbers the slots of a plan, and knows the one that each value is in. Variables have none of their own: what is read
// of one before any write is in the slot of that read.
class SlotTable {
 public:
  int size() const { return static_cast<int>(devices_.size()); }
  // Of a value on that device.
  int add(c10::Device device = c10::kCPU) {
    devices_.push_back(device);
    return size() - 1;
  }
  c10::Device device_of(int slot) const { return devices_[static_cast<size_t>(slot)]; }

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
  std::vector<c10::Device> devices_;  // of each slot
  std::unordered_map<Output, int, OutputHash> slots_;
  std::unordered_map<Output, int, OutputHash> early_reads_;
};

}  // namespace longhaul
