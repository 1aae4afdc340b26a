#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

// Clang's thread-safety annotations; other compilers ignore them. https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#if defined(__clang__)
#define LONGHAUL_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define LONGHAUL_THREAD_ANNOTATION(x)
#endif
#define GUARDED_BY(x) LONGHAUL_THREAD_ANNOTATION(guarded_by(x))
#define REQUIRES(...) LONGHAUL_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) LONGHAUL_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) LONGHAUL_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RELEASE(...) LONGHAUL_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS LONGHAUL_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace longhaul {

using Seconds = std::chrono::duration<double>;

class LONGHAUL_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
#ifdef _GLIBCXX_TSAN
  // ThreadSanitizer does not see that a std::mutex is destroyed, and would take the next one at that address for the
  // same.
  ~Mutex() { pthread_mutex_destroy(mutex_.native_handle()); }
#endif
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class LONGHAUL_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable for Mutex. Waits may end spuriously, so every caller waits in a loop that checks its condition.
// Each wait has a comment that explains its timeout, or says who ends it (tests/waits_lint.sh).
class CondVar {
 public:
  // Waits until a notification. Code that changes the condition must notify, and the waiting thread must have an owner
  // that ends the wait. If several threads may wait, prefer notify_all(): older versions of glibc may lose a
  // notify_one() (glibc bug 25847).
  void wait(Mutex& mutex) REQUIRES(mutex);
  // Waits in real time. A wait of over an hour ends after an hour, and one of NaN at once. Code whose tests must not
  // sleep waits through a Clock instead.
  void wait_for(Mutex& mutex, Seconds timeout) REQUIRES(mutex);
  void notify_all() { cond_.notify_all(); }
  void notify_one() { cond_.notify_one(); }

 private:
  std::condition_variable cond_;
};

}  // namespace longhaul
