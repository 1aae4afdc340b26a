#include "longhaul/base/job_threads.h"

#include <deque>
#include <system_error>
#include <utility>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/base/thread.h"
#include "longhaul/base/waiting.h"

namespace longhaul {

struct JobThreads::State : std::enable_shared_from_this<State> {
  State(Clock& with_clock, Names with_names, Options with)
      : clock(with_clock), names(std::move(with_names)), options(std::move(with)) {}

  void start(Job job) EXCLUDES(mutex) {
    MutexLock lock(mutex);
    if (is_stopping) throw UnavailableError(fmt::format("{} is being stopped: {}", names.owner, why_stopping));
    if (busy >= options.most + options.most_queued) refuse();
    if (jobs.size() >= idle && running < options.most) add_thread();
    jobs.push_back(std::move(job));
    ++busy;
    changed.notify_all();
  }

  [[noreturn]] void refuse() const REQUIRES(mutex) {
    throw ResourceExhaustedError(fmt::format(
        "{} has {} {}, {} of them under way, which is the most that it takes: some may wait in queues that nobody "
        "fills; give such runs a timeout",
        names.owner, busy, names.jobs, busy - jobs.size()));
  }

  // Without another thread, a job that may stand in a queue waits for one of those that there are.
  void add_thread() REQUIRES(mutex) {
    try {
      threads.emplace_back(fmt::format("{}-{}", names.thread, started), [self = shared_from_this()] { self->work(); });
    } catch (const std::system_error& error) {
      if (running > 0 && options.most_queued > 0) return;
      throw ResourceExhaustedError(fmt::format("{} cannot start another thread: {}", names.owner, error.what()));
    }
    ++started;
    ++running;
  }

  // Empty: the thread is to end.
  Job next() EXCLUDES(mutex) {
    MutexLock lock(mutex);
    if (jobs.empty() && idle >= options.most_idle) return end_thread(), Job();
    ++idle;
    const Waiting waiting("the next of the", names.jobs);
    while (jobs.empty() && !is_stopping) changed.wait(mutex);  // wait: start() and request_stop() end it
    --idle;
    if (jobs.empty()) return end_thread(), Job();
    Job job = std::move(jobs.front());
    jobs.pop_front();
    return job;
  }

  // From here on nobody counts on it; stop() joins those that it ends.
  void end_thread() REQUIRES(mutex) {
    --running;
    changed.notify_all();
    if (is_stopping) return;
    for (auto thread = threads.begin(); thread != threads.end(); ++thread) {
      if (!thread->is_current()) continue;
      thread->detach();
      threads.erase(thread);
      return;
    }
  }

  void work() EXCLUDES(mutex) {
    while (Job job = next()) {
      run(std::exchange(job, nullptr));  // what it holds is destroyed before it counts as ended
      end_job();
    }
  }

  void run(const Job& job) const {
    try {
      job();
    } catch (...) {
      log_error("{}: one of its {} failed: {}", names.owner, names.jobs, message_of(std::current_exception()));
    }
  }

  void end_job() EXCLUDES(mutex) {
    MutexLock lock(mutex);
    --busy;
    changed.notify_all();
  }

  void request_stop(const std::string& why) EXCLUDES(mutex) {
    MutexLock lock(mutex);
    if (!is_stopping) why_stopping = why;
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

  Clock& clock;
  const Names names;
  const Options options;
  mutable Mutex mutex;
  CondVar changed;
  std::deque<Job> jobs GUARDED_BY(mutex);
  size_t busy GUARDED_BY(mutex) = 0;  // jobs under way or waiting for their turn
  size_t idle GUARDED_BY(mutex) = 0;
  size_t running GUARDED_BY(mutex) = 0;
  size_t started GUARDED_BY(mutex) = 0;
  bool is_stopping GUARDED_BY(mutex) = false;
  std::string why_stopping GUARDED_BY(mutex);
  std::vector<NamedThread> threads GUARDED_BY(mutex);
};

JobThreads::JobThreads(Clock& clock, Names names, Options options)
    : state_(std::make_shared<State>(clock, std::move(names), std::move(options))) {}

// It may be a job that destroys this last.
JobThreads::~JobThreads() {
  request_stop("it has ended");
  for (NamedThread& thread : state_->take_threads()) thread.detach();
}

void JobThreads::start(Job job) {
  state_->start(state_->options.around ? state_->options.around(std::move(job)) : std::move(job));
}

void JobThreads::request_stop(const std::string& why) {
  state_->request_stop(why);
}

bool JobThreads::stop(Seconds timeout) {
  const size_t left = state_->wait_for_end(state_->clock.now() + timeout);
  for (NamedThread& thread : state_->take_threads()) {
    left == 0 ? thread.join() : thread.detach();
  }
  if (left > 0) {
    log_error("{} was stopped, but {} of its {} have not ended after {:.3g} s and are left behind", state_->names.owner,
              left, state_->names.jobs, timeout.count());
  }
  return left == 0;
}

size_t JobThreads::busy() const {
  MutexLock lock(state_->mutex);
  return state_->busy;
}

size_t JobThreads::threads() const {
  MutexLock lock(state_->mutex);
  return state_->running;
}

}  // namespace longhaul
