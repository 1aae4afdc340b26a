#include "longhaul/grpc/transport/callback_scope.h"

namespace longhaul {
namespace {

thread_local int callback_depth = 0;
// The door that this thread is inside of. Callbacks are never within each other, so there is one.
thread_local const CallbackDoor* door_of_thread = nullptr;

}  // namespace

CallbackScope::CallbackScope() {
  ++callback_depth;
}

CallbackScope::~CallbackScope() {
  --callback_depth;
}

bool CallbackScope::is_inside() {
  return callback_depth > 0;
}

bool CallbackDoor::enter() {
  MutexLock lock(mutex_);
  if (is_shut_) return false;
  ++inside_;
  return true;
}

void CallbackDoor::leave() {
  MutexLock lock(mutex_);
  --inside_;
  changed_.notify_all();
}

bool CallbackDoor::pass(const std::function<void()>& body) {
  if (!enter()) return false;
  door_of_thread = this;
  try {
    body();
  } catch (...) {
    door_of_thread = nullptr;
    leave();
    throw;
  }
  door_of_thread = nullptr;
  leave();
  return true;
}

void CallbackDoor::shut() {
  const int own = door_of_thread == this ? 1 : 0;
  MutexLock lock(mutex_);
  is_shut_ = true;
  while (inside_ > own) changed_.wait(mutex_);  // wait: handlers, which may not wait themselves
}

}  // namespace longhaul
