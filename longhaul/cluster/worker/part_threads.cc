#include "longhaul/cluster/worker/part_threads.h"

#include <deque>
#include <system_error>
#include <utility>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/base/thread.h"

namespace longhaul {

struct PartThreads::State : std::enable_shared_from_this<State> {
  State(std::string named, Clock& with_clock, Options with)
      : task(std::move(named)), clock(with_clock), options(std::move(with)) {}

  void check_room() const REQUIRES(mutex) {
    if (is_stopping) throw UnavailableError(fmt::format("task {} is being stopped", task));
    if (busy < options.most) return;
    throw ResourceExhaustedError(fmt::format(
        "task {} is at work on {} parts of steps and other calls, which is the most that it takes at a time: some may "
        "wait in queues that nobody fills",
        task, busy));
  }

  void add_thread() REQUIRES(mutex) {
    try {
      threads.emplace_back(fmt::format("lh-part-{}", threads.size()), [self = shared_from_this()] { self->work(); });
    } catch (const std::system_error& error) {
      throw ResourceExhaustedError(fmt::format("task {} cannot start another thread: {}", task, error.what()));
    }
    ++running;
  }

  void start(Job job) EXCLUDES(mutex) {
    MutexLock lock(mutex);
    check_room();
    if (jobs.size() >= idle) add_thread();
    jobs.push_back(std::move(job));
    ++busy;
    changed.notify_all();
  }

  // Empty: it is to end.
  Job next() EXCLUDES(mutex) {
    MutexLock lock(mutex);
    ++idle;
    while (jobs.empty() && !is_stopping) changed.wait(mutex);  // wait: start() and stop() end it
    --idle;
    if (jobs.empty()) return {};
    Job job = std::move(jobs.front());
    jobs.pop_front();
    return job;
  }

  void work() EXCLUDES(mutex) {
    while (Job job = next()) {
      try {
        job();
      } catch (const std::exception& error) {
        log_error("task {}: a call of a master failed: {}", task, error.what());
      }
      end_job();
    }
    MutexLock lock(mutex);
    --running;
    changed.notify_all();
  }

  void end_job() EXCLUDES(mutex) {
    MutexLock lock(mutex);
    --busy;
    changed.notify_all();
  }

  void request_stop() EXCLUDES(mutex) {
    MutexLock lock(mutex);
    is_stopping = true;
    changed.notify_all();
  }

  size_t wait_for_end(Seconds deadline) EXCLUDES(mutex) {
    MutexLock lock(mutex);
    while (running > 0 && clock.now() < deadline) {
      clock.wait_until(changed, mutex, deadline);  // wait: for the last job's end, for the caller's timeout
    }
    return running;
  }

  std::vector<NamedThread> take_threads() EXCLUDES(mutex) {
    MutexLock lock(mutex);
    return std::exchange(threads, {});
  }

  const std::string task;
  Clock& clock;
  const Options options;
  mutable Mutex mutex;
  CondVar changed;
  std::deque<Job> jobs GUARDED_BY(mutex);
  size_t busy GUARDED_BY(mutex) = 0;  // jobs under way or waiting for their thread
  size_t idle GUARDED_BY(mutex) = 0;
  size_t running GUARDED_BY(mutex) = 0;
  bool is_stopping GUARDED_BY(mutex) = false;
  std::vector<NamedThread> threads GUARDED_BY(mutex);
};

PartThreads::PartThreads(std::string task, Clock& clock, Options options)
    : state_(std::make_shared<State>(std::move(task), clock, std::move(options))) {}

// It may be a job that destroys this last.
PartThreads::~PartThreads() {
  request_stop();
  for (NamedThread& thread : state_->take_threads()) thread.detach();
}

void PartThreads::start(Job job) {
  state_->start(state_->options.around ? state_->options.around(std::move(job)) : std::move(job));
}

void PartThreads::request_stop() {
  state_->request_stop();
}

bool PartThreads::stop(Seconds timeout) {
  request_stop();
  const size_t left = state_->wait_for_end(state_->clock.now() + timeout);
  for (NamedThread& thread : state_->take_threads()) {
    left == 0 ? thread.join() : thread.detach();
  }
  if (left > 0) {
    log_error("task {} was stopped, but {} of its jobs have not ended after {:.3g} s and are left behind", state_->task,
              left, timeout.count());
  }
  return left == 0;
}

size_t PartThreads::busy() const {
  MutexLock lock(state_->mutex);
  return state_->busy;
}

}  // namespace longhaul
