#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/graph/operation.h"
#include "longhaul/host/resource_name.h"
#include "longhaul/runtime/aten/value.h"
#include "longhaul/runtime/memory/variable_memory.h"
#include "longhaul/runtime/state/snapshot_limit.h"
#include "longhaul/runtime/state/state_changes.h"

namespace longhaul {

class Snapshots;

// One variable of a task: a slot that holds a tensor. Reading returns the tensor itself. An update writes in place
// if the storage is not held elsewhere, and otherwise to another buffer, so a returned tensor never changes. All but
// small tensors are in the memory for variables, wherever they came from. Any thread.
class VariableSlot {
 public:
  // `changes` is notified of the first assignment.
  VariableSlot(ResourceName name, VariableMemory memory, std::shared_ptr<StateChanges> changes)
      : name_(std::move(name)), memory_(std::move(memory)), changes_(std::move(changes)) {}
  ~VariableSlot();
  VariableSlot(const VariableSlot&) = delete;
  const std::string& name() const { return name_.name; }
  const ResourceName& full_name() const { return name_; }

  // From now on the value is the program's (ops/external_variable.h): read() calls the function without arguments,
  // assign() with the new value, and update() is refused. Only the first call counts. `initialized`: it can be read
  // immediately.
  void set_program_value(const std::shared_ptr<HostFunction>& access, bool initialized);

  bool initialized() const;
  // FailedPreconditionError: "Attempting to use uninitialized value NAME".
  Value read() const;

  // Takes `value` itself if its bytes are not held elsewhere and come from the memory for variables (or from libtorch,
  // if small), otherwise a copy. Returns the variable's new value.
  Value assign(Value value);

  // Forgets the value, and frees its bytes unless they are held elsewhere.
  void release();

  // Calls write(source, destination): both are the variable's tensor if it may be changed in place; else destination is
  // a buffer of the same shape to be filled. Returns the new value. The slot is locked during the call.
  template <typename Write>
  at::Tensor update(const Write& write) {
    std::lock_guard<std::mutex> lock(mutex_);
    return update_locked(write);
  }

  // For operations that change several variables together: lock all (in order of address), then call update_locked on
  // each.
  std::mutex& mutex() const { return mutex_; }
  template <typename Write>
  at::Tensor update_locked(const Write& write) {
    check_updatable();
    if (exclusive(value_.tensor)) {
      write(value_.tensor, value_.tensor);
    } else {
      at::Tensor fresh = memory_.make_like(value_.tensor);
      write(value_.tensor, fresh);
      memory_.replaced(value_.tensor, fresh);
      value_.tensor = std::move(fresh);
      copies_.fetch_add(1, std::memory_order_relaxed);
    }
    return value_.tensor;
  }

  // The address and size of the buffer that the next update cannot write to because it is held elsewhere; nullptr:
  // none, or a small one.
  std::pair<const void*, size_t> held_buffer() const;

  // The number of updates that had to use a new buffer because the old one was held elsewhere.
  int64_t copies() const { return copies_.load(std::memory_order_relaxed); }

  static bool exclusive(const at::Tensor& tensor) {
    return tensor.use_count() == 1 && tensor.storage().use_count() == 1;
  }

 private:
  bool initialized_locked() const { return value_.defined() || program_value_assigned_; }
  void check_initialized() const;
  void check_updatable() const;
  Value assign_to_program(Value value);
  bool can_take(const at::Tensor& tensor) const;
  bool can_copy_in_place(const at::Tensor& tensor) const;

  const ResourceName name_;
  const VariableMemory memory_;
  const std::shared_ptr<StateChanges> changes_;
  std::atomic<int64_t> copies_{0};
  mutable std::mutex mutex_;
  Value value_;  // guarded by mutex_

  std::shared_ptr<HostFunction> program_value_;  // guarded by mutex_; set once; called without the lock
  bool program_value_assigned_ = false;          // guarded by mutex_
};

// The variables of a task, by container and name. Any thread.
class VariableStore {
 public:
  // `snapshot_memory`: see SessionOptions.
  explicit VariableStore(std::optional<uint64_t> snapshot_memory = std::nullopt, Clock& clock = Clock::real());
  // Others in the memory of that one, with its limit and its count of changes.
  explicit VariableStore(const VariableStore* neighbour);

  const VariableMemory& memory() const { return memory_; }
  SnapshotLimit& snapshot_limit() { return *snapshot_limit_; }
  std::shared_ptr<Snapshots> snapshots();
  StateChanges& changes() { return *changes_; }

  // The slot of that name, created by the first call. A plan that holds it may use it after a reset.
  std::shared_ptr<VariableSlot> slot(const ResourceName& name);
  // The same in the default container of a process outside a cluster.
  std::shared_ptr<VariableSlot> slot(const std::string& name) { return slot(ResourceName{kLocalContainer, name}); }
  // Forgets the variables of these containers (of none: of all). Plans under way still read and write them.
  void remove(const std::vector<std::string>& containers);
  // Forgets all variables and frees their bytes, whoever holds a slot.
  void clear();

  // Marks a variable whose step failed halfway. While there is one, no snapshot can be taken. A slot that a reset has
  // removed is not marked.
  void mark_inconsistent(const VariableSlot& variable, const std::string& why);
  void mark_consistent(const VariableSlot& variable);
  // FailedPreconditionError: a variable is inconsistent.
  void check_consistent() const;

 private:
  const VariableMemory memory_;
  const std::shared_ptr<SnapshotLimit> snapshot_limit_;
  const std::shared_ptr<StateChanges> changes_;
  mutable std::mutex mutex_;
  std::weak_ptr<Snapshots> snapshots_;                           // guarded by mutex_
  std::map<ResourceName, std::shared_ptr<VariableSlot>> slots_;  // guarded by mutex_
  std::vector<std::weak_ptr<VariableSlot>> removed_;             // guarded by mutex_; what plans still hold
  std::map<ResourceName, std::string> inconsistent_;             // guarded by mutex_
  std::atomic<bool> any_inconsistent_{false};
};

}  // namespace longhaul
