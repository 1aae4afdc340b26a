#pragma once

#include <functional>
#include <memory>

#include "longhaul/base/mutex.h"

namespace longhaul {

// As long as it lives, this thread is inside a callback of gRPC, where nobody may wait for another callback.
class CallbackScope {
 public:
  CallbackScope();
  ~CallbackScope();
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

  static bool is_inside();
};

// A door in front of an object that callbacks use: once it is shut, nobody is inside. Any thread may call.
class CallbackDoor {
 public:
  // Calls `body` unless the door is shut: then returns false.
  bool pass(const std::function<void()>& body) EXCLUDES(mutex_);
  // Waits for those inside, but not for a pass() further down on this thread's own stack.
  void shut() EXCLUDES(mutex_);

 private:
  bool enter() EXCLUDES(mutex_);
  void leave() EXCLUDES(mutex_);

  Mutex mutex_;
  CondVar changed_;
  bool is_shut_ GUARDED_BY(mutex_) = false;
  int inside_ GUARDED_BY(mutex_) = 0;
};

}  // namespace longhaul
