#pragma once

#include <cstdint>
#include <optional>

namespace longhaul {

// While it lives, this thread runs a program's code within the training step `number`. So what that code calls can tell
// a new training from one that continues.
class StepOfThread {
 public:
  explicit StepOfThread(int64_t number);
  ~StepOfThread();
  StepOfThread(const StepOfThread&) = delete;
  StepOfThread& operator=(const StepOfThread&) = delete;

  static std::optional<int64_t> current();
};

}  // namespace longhaul
