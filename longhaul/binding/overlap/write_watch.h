#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "longhaul/binding/overlap/pending_copy.h"

namespace at {
struct RecordFunction;
}

namespace longhaul {

// Tells pending copies of the writes that libtorch announces: before each operator, on whatever thread, libtorch's
// dispatcher calls a function of ours with the operator's schema and arguments. What the schema marks as written is
// found by its addresses, so views, detached tensors and other tensors of the same memory count, too. While no copy is
// pending, that function is switched off. Not announced are writes through data_ptr(), by operators whose schema does
// not say so (batch norm's statistics), and on a thread with a DisableRecordFunctionGuard.
class WriteWatch {
 public:
  static WriteWatch& of_process();  // any thread may call

  void add(std::shared_ptr<PendingCopy> copy);
  void remove(const std::shared_ptr<PendingCopy>& copy);  // may be called again

  // Whether announcements come while a copy is pending, tried with a write: not so if libtorch was built without them,
  // or the program has removed all functions that they are for; then ours is added again for the next copy.
  bool works();
  // Whether those of this thread come: not so under a DisableRecordFunctionGuard.
  static bool hears_this_thread();

 private:
  WriteWatch() = default;
  void before_operator(const at::RecordFunction& operation) noexcept;
  void before_write(const at::Tensor& tensor);
  void spoil_all(const char* why) noexcept;
  void switch_on();

  std::shared_mutex mutex_;
  std::vector<std::shared_ptr<PendingCopy>> copies_;  // guarded by mutex_
  std::optional<uint64_t> callback_;                  // guarded by mutex_: libtorch's handle
};

}  // namespace longhaul
