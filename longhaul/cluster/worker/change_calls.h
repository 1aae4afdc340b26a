#pragma once

#include <map>
#include <memory>

#include "longhaul/base/job_threads.h"
#include "longhaul/cluster/transport/incoming_call.h"
#include "longhaul/runtime/state/task_resources.h"

namespace longhaul {

// The WaitForChange calls that wait for the task's variables to change. However many there are, one job waits for them,
// as long as there are any. Any thread may call.
class ChangeCalls : public std::enable_shared_from_this<ChangeCalls> {
 public:
  explicit ChangeCalls(std::shared_ptr<TaskResources> resources) : resources_(std::move(resources)) {}

  // Answers at once if the generation is another than `seen`, otherwise when it is. A call that finds no thread for the
  // job gets its error.
  void add(std::shared_ptr<IncomingCall> call, uint64_t seen, JobThreads& threads) EXCLUDES(mutex_);
  void stop();  // ends the job, and the calls with UnavailableError
  size_t size() const EXCLUDES(mutex_);

 private:
  struct Waiting {
    std::shared_ptr<IncomingCall> call;
    uint64_t seen = 0;
  };

  void start_job(JobThreads& threads) EXCLUDES(mutex_);
  std::shared_ptr<IncomingCall> take(const IncomingCall* call) EXCLUDES(mutex_);  // null: it is not there
  void has_gone(const IncomingCall* call) EXCLUDES(mutex_);
  void wait_for_changes() EXCLUDES(mutex_);  // the job
  uint64_t wait_for_next(uint64_t generation, Cancellation& needed);
  // What the next wait is for; null: no call is left.
  std::shared_ptr<Cancellation> answer_all_but(uint64_t generation) EXCLUDES(mutex_);
  void end_job(const std::exception_ptr& error) EXCLUDES(mutex_);

  const std::shared_ptr<TaskResources> resources_;
  Cancellation stop_;
  mutable Mutex mutex_;
  std::map<const IncomingCall*, Waiting> calls_ GUARDED_BY(mutex_);
  bool has_job_ GUARDED_BY(mutex_) = false;
  std::shared_ptr<Cancellation> needed_ GUARDED_BY(mutex_);  // of the job's wait: cancelled when no call is left
};

}  // namespace longhaul
