#include "longhaul/cluster/master/open_runs.h"

#include <utility>

#include "longhaul/base/error.h"

namespace longhaul {

OpenRuns::Run OpenRuns::begin() {
  MutexLock lock(mutex_);
  if (is_closed_) throw FailedPreconditionError("Attempted to use a closed Session.");
  session_.check();
  ++running_;
  return Run(*this);
}

void OpenRuns::end() {
  MutexLock lock(mutex_);
  --running_;
  changed_.notify_all();
}

bool OpenRuns::close() {
  MutexLock lock(mutex_);
  return !std::exchange(is_closed_, true);
}

bool OpenRuns::wait_for_end(Seconds until) {
  MutexLock lock(mutex_);
  // wait: for the runs, which were cancelled
  while (running_ > 0 && clock_.now() < until) clock_.wait_until(changed_, mutex_, until);
  return running_ == 0;
}

}  // namespace longhaul
