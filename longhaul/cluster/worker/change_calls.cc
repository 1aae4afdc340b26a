#include "longhaul/cluster/worker/change_calls.h"

#include "longhaul/base/error.h"
#include "longhaul/proto/cluster_service.pb.h"

namespace longhaul {
namespace {

void answer_change(IncomingCall& call, uint64_t generation) {
  proto::WaitForChangeReply reply;
  reply.set_generation(generation);
  call.reply(to_message(reply));
}

}  // namespace

void ChangeCalls::add(std::shared_ptr<IncomingCall> call, uint64_t seen, JobThreads& threads) {
  const IncomingCall* const key = call.get();
  bool needs_job = false;
  {
    MutexLock lock(mutex_);
    calls_.emplace(key, Waiting{call, seen});
    needs_job = !std::exchange(has_job_, true);
  }
  call->on_gone([weak = weak_from_this(), key] {
    if (const auto self = weak.lock()) self->has_gone(key);
  });
  // After it was added: the job may have looked at the calls before.
  const uint64_t generation = resources_->changes().generation();
  if (generation != seen) {
    if (const auto mine = take(key)) answer_change(*mine, generation);
  }
  if (needs_job) start_job(threads);
}

void ChangeCalls::start_job(JobThreads& threads) {
  try {
    threads.start([self = shared_from_this()] { self->wait_for_changes(); });
  } catch (...) {
    end_job(std::current_exception());
  }
}

std::shared_ptr<IncomingCall> ChangeCalls::take(const IncomingCall* call) {
  MutexLock lock(mutex_);
  const auto found = calls_.find(call);
  if (found == calls_.end()) return nullptr;
  std::shared_ptr<IncomingCall> taken = std::move(found->second.call);
  calls_.erase(found);
  return taken;
}

void ChangeCalls::has_gone(const IncomingCall* call) {
  const std::shared_ptr<IncomingCall> gone = take(call);
  std::shared_ptr<Cancellation> needed;
  {
    MutexLock lock(mutex_);
    if (calls_.empty()) needed = needed_;
  }
  if (needed != nullptr) needed->cancel("nobody waits for a change");
}

void ChangeCalls::wait_for_changes() {
  try {
    uint64_t generation = resources_->changes().generation();
    while (const auto needed = answer_all_but(generation)) generation = wait_for_next(generation, *needed);
  } catch (...) {
    end_job(std::make_exception_ptr(UnavailableError("the task is being stopped")));
  }
}

// Somebody may wait again by the time that nobody did.
uint64_t ChangeCalls::wait_for_next(uint64_t generation, Cancellation& needed) {
  constexpr Seconds kHour{3600};
  try {
    return resources_->changes().wait(generation, kHour, &needed);
  } catch (const CancelledError&) {
    stop_.check();
    return resources_->changes().generation();
  }
}

std::shared_ptr<Cancellation> ChangeCalls::answer_all_but(uint64_t generation) {
  std::vector<std::shared_ptr<IncomingCall>> answered;
  auto next = std::make_shared<Cancellation>(&stop_);
  {
    MutexLock lock(mutex_);
    for (auto waiting = calls_.begin(); waiting != calls_.end();) {
      if (waiting->second.seen == generation) {
        ++waiting;
      } else {
        answered.push_back(std::move(waiting->second.call));
        waiting = calls_.erase(waiting);
      }
    }
    has_job_ = !calls_.empty();
    if (!has_job_) next = nullptr;
    needed_ = next;
  }
  for (const auto& call : answered) answer_change(*call, generation);
  return next;
}

void ChangeCalls::end_job(const std::exception_ptr& error) {
  std::map<const IncomingCall*, Waiting> ended;
  {
    MutexLock lock(mutex_);
    has_job_ = false;
    ended.swap(calls_);
  }
  for (const auto& [key, waiting] : ended) waiting.call->fail(error);
}

void ChangeCalls::stop() {
  stop_.cancel("the task is being stopped");
}

size_t ChangeCalls::size() const {
  MutexLock lock(mutex_);
  return calls_.size();
}

}  // namespace longhaul
