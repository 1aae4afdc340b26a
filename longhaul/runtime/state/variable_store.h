#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "longhaul/graph/operation.h"
#include "longhaul/runtime/aten/value.h"
#include "longhaul/runtime/memory/variable_memory.h"
#include "longhaul/runtime/state/snapshot_limit.h"

namespace longhaul {

class Snapshots;

// One variable of a session: a slot that holds a tensor. Reading hands out the tensor itself. An update writes in place
// while nobody else holds that storage, and else writes its result into another buffer, so what was handed out never
// changes. Tensors of some size are in the memory for variables, whichever way they came. Any thread.
class VariableSlot {
 public:
  VariableSlot(std::string name, VariableMemory memory) : name_(std::move(name)), memory_(std::move(memory)) {}
  ~VariableSlot();
  VariableSlot(const VariableSlot&) = delete;
  const std::string& name() const { return name_; }

  // From now on the value is the program's (ops/external_variable.h): read() calls the function with nothing, assign()
  // with the new value, and update() is refused. Only the first call counts. `initialized`: it can be read at once.
  void set_program_value(const std::shared_ptr<HostFunction>& access, bool initialized);

  bool initialized() const;
  // FailedPreconditionError: "Attempting to use uninitialized value NAME".
  Value read() const;

  // Takes `value` as it is if nobody else holds its bytes and they come from the memory for variables (or from
  // libtorch, where they are few), a copy of it otherwise. Returns what the variable then holds.
  Value assign(Value value);

  // Calls write(source, destination): both are the variable's tensor when it may be changed in place; else destination
  // is a buffer of the same shape to be filled. Returns the new value. The slot stays locked meanwhile.
  template <typename Write>
  at::Tensor update(const Write& write) {
    std::lock_guard<std::mutex> lock(mutex_);
    return update_locked(write);
  }

  // For operations that change several variables together: lock all (by address), then update_locked each.
  std::mutex& mutex() const { return mutex_; }
  template <typename Write>
  at::Tensor update_locked(const Write& write) {
    check_updatable();
    if (exclusive(value_.tensor)) {
      write(value_.tensor, value_.tensor);
    } else {
      at::Tensor fresh = memory_.make(value_.tensor.sizes(), value_.tensor.scalar_type());
      write(value_.tensor, fresh);
      memory_.replaced(value_.tensor, fresh);
      value_.tensor = std::move(fresh);
      copies_.fetch_add(1, std::memory_order_relaxed);
    }
    return value_.tensor;
  }

  // The buffer that the next update cannot write to, because somebody else holds it: where, and how many bytes; none:
  // nullptr. Of a small one, too, it says none.
  std::pair<const void*, size_t> held_buffer() const;

  // How many updates had to leave the old buffer to somebody who held it.
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

  const std::string name_;
  const VariableMemory memory_;
  std::atomic<int64_t> copies_{0};
  mutable std::mutex mutex_;
  Value value_;  // guarded by mutex_

  std::shared_ptr<HostFunction> program_value_;  // guarded by mutex_; set once; called without the lock
  bool program_value_assigned_ = false;          // guarded by mutex_
};

// The variables of a session, by name. Any thread.
class VariableStore {
 public:
  // `snapshot_memory`: see SessionOptions.
  explicit VariableStore(std::optional<uint64_t> snapshot_memory = std::nullopt);

  const VariableMemory& memory() const { return memory_; }
  SnapshotLimit& snapshot_limit() { return *snapshot_limit_; }
  std::shared_ptr<Snapshots> snapshots();

  // The slot of that name, made at the first call; lives as long as the store.
  VariableSlot& slot(const std::string& name);
  void clear();

  // Variables whose step failed halfway. While there is one, no snapshot is given.
  void mark_inconsistent(const std::string& name, const std::string& why);
  void mark_whole(const std::string& name);
  // FailedPreconditionError: a variable is inconsistent.
  void check_whole() const;

 private:
  const VariableMemory memory_;
  const std::shared_ptr<SnapshotLimit> snapshot_limit_;
  mutable std::mutex mutex_;
  std::weak_ptr<Snapshots> snapshots_;                          // guarded by mutex_
  std::map<std::string, std::unique_ptr<VariableSlot>> slots_;  // guarded by mutex_
  std::map<std::string, std::string> inconsistent_;             // guarded by mutex_
  std::atomic<bool> any_inconsistent_{false};
};

}  // namespace longhaul
