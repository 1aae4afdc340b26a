#pragma once

#include <pthread.h>

#include <stdexcept>

namespace longhaul {

// As long as it lives the process can start no thread: the stack that each would get is larger than any address space.
class NoNewThreads {
 public:
  NoNewThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_getattr_default_np(&huge);
    pthread_attr_setstacksize(&huge, size_t{1} << 60);
    const int failed = pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
    if (failed != 0) throw std::runtime_error("the size of a stack cannot be set");
  }
  ~NoNewThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoNewThreads(const NoNewThreads&) = delete;
  NoNewThreads& operator=(const NoNewThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace longhaul
