#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "longhaul/graph/operation.h"
#include "longhaul/runtime/value.h"

namespace longhaul {

// One variable of a session: a slot that holds a tensor. Reading hands out the tensor itself. An update writes in place
// while nobody else holds that storage, and else writes its result into another buffer, so what was handed out never
// changes. Any thread.
class VariableSlot {
 public:
  explicit VariableSlot(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }

  // From now on the value is the program's (ops/program_variable.h): read() calls the function with nothing, assign()
  // with the new value, and update() is refused. Only the first call counts.
  void set_program_value(const std::shared_ptr<HostFunction>& access);

  bool initialized() const;
  // FailedPreconditionError: "Attempting to use uninitialized value NAME".
  Value read() const;

  // Takes `value` as it is if nobody else holds its bytes and libtorch allocated them, a copy of it otherwise.
  // Returns what the variable then holds.
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
      at::Tensor fresh = take_spare();
      write(value_.tensor, fresh);
      spare_ = std::exchange(value_.tensor, std::move(fresh));
      copies_.fetch_add(1, std::memory_order_relaxed);
    }
    return value_.tensor;
  }

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
  at::Tensor take_spare();

  const std::string name_;
  std::atomic<int64_t> copies_{0};
  mutable std::mutex mutex_;
  Value value_;       // guarded by mutex_
  at::Tensor spare_;  // guarded by mutex_; the buffer before the last copy, for the next one

  std::shared_ptr<HostFunction> program_value_;  // guarded by mutex_; set once; called without the lock
  bool program_value_assigned_ = false;          // guarded by mutex_
};

// The variables of a session, by name. Any thread.
class VariableStore {
 public:
  // The slot of that name, made at the first call; lives as long as the store.
  VariableSlot& slot(const std::string& name);
  void clear();

  // Variables whose step failed halfway. While there is one, no snapshot is given.
  void mark_torn(const std::string& name);
  void mark_whole(const std::string& name);
  // FailedPreconditionError: there is a torn variable.
  void check_whole() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<VariableSlot>> slots_;  // guarded by mutex_
  std::set<std::string> torn_;                                  // guarded by mutex_
  std::atomic<bool> any_torn_{false};
};

}  // namespace longhaul
