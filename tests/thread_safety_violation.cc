// Must not pass Clang's thread-safety analysis: one field is written without its mutex. Not part of the build.
#include "longhaul/base/mutex.h"

class Counter {
 public:
  void add_safely() {
    longhaul::MutexLock lock(mutex_);
    ++count_;
  }
  void add_unsafely() { ++count_; }

 private:
  longhaul::Mutex mutex_;
  int count_ GUARDED_BY(mutex_) = 0;
};

void use(Counter& counter) {
  counter.add_safely();
  counter.add_unsafely();
}
