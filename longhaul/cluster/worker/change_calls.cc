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

void ChangeCalls::add(std::shared_ptr<IncomingCall> call, uint64_t seen, PartThreads& threads) {
  const IncomingCall* const key = call.get();
  bool needs_job = false;
  {
    MutexLock lock(mutex_);
    calls_.emplace(key, Waiting{call, seen});
    needs_job = !std::exchange(has_job_, true);
  }
  call->on_gone([weak = weak_from_this(), key] {
    if (const auto self = weak.lock()) self->take(key);
  });
  // After it was added: the job may have looked at the calls before.
  const uint64_t generation = resources_->changes().generation();
  if (generation != seen) {
    if (const auto mine = take(key)) answer_change(*mine, generation);
  }
  if (needs_job) start_job(threads);
}

void ChangeCalls::start_job(PartThreads& threads) {
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

void ChangeCalls::wait_for_changes() {
  constexpr Seconds kHour{3600};
  try {
    uint64_t generation = resources_->changes().generation();
    while (answer_all_but(generation)) generation = resources_->changes().wait(generation, kHour, &stop_);
  } catch (...) {
    end_job(std::make_exception_ptr(UnavailableError("the task is being stopped")));
  }
}

bool ChangeCalls::answer_all_but(uint64_t generation) {
  std::vector<std::shared_ptr<IncomingCall>> answered;
  bool is_needed = false;
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
    is_needed = !calls_.empty();
    has_job_ = is_needed;
  }
  for (const auto& call : answered) answer_change(*call, generation);
  return is_needed;
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
