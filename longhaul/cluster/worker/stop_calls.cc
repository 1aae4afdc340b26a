#include "longhaul/cluster/worker/stop_calls.h"

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/proto/cluster_service.pb.h"

namespace longhaul {
namespace {

void answer_stop(IncomingCall& call, Seconds left) {
  proto::WaitForStopReply reply;
  reply.set_grace_secs(std::max(Seconds{0}, left).count());
  call.reply(to_message(reply));
}

}  // namespace

void StopCalls::add(std::shared_ptr<IncomingCall> call) {
  std::optional<Seconds> end;
  {
    MutexLock lock(mutex_);
    end = end_;
    if (!end) calls_.emplace(call.get(), call);
  }
  if (end) return answer_stop(*call, *end - clock_.now());
  call->on_gone([weak = weak_from_this(), key = call.get()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    MutexLock lock(self->mutex_);
    self->calls_.erase(key);
  });
}

size_t StopCalls::announce(Seconds grace) {
  const Calls calls = take_all(clock_.now() + grace);
  for (const auto& [key, call] : calls) answer_stop(*call, grace);
  return calls.size();
}

void StopCalls::stop() {
  for (const auto& [key, call] : take_all(std::nullopt))
    call->fail(std::make_exception_ptr(UnavailableError("the task is being stopped")));
}

StopCalls::Calls StopCalls::take_all(std::optional<Seconds> end) {
  Calls calls;
  MutexLock lock(mutex_);
  if (end) end_ = end_ ? std::min(*end_, *end) : end;
  calls.swap(calls_);
  return calls;
}

size_t StopCalls::size() const {
  MutexLock lock(mutex_);
  return calls_.size();
}

}  // namespace longhaul
