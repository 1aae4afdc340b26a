#include "longhaul/cluster/transport/call_and_wait.h"

#include "longhaul/base/waiting.h"

namespace longhaul {
namespace {

// Shared with the call, which may end after the caller has given up.
struct AwaitedReply {
  Mutex mutex;
  CondVar changed;
  std::optional<CallReply> reply GUARDED_BY(mutex);
  bool is_cancelled GUARDED_BY(mutex) = false;

  void set(CallReply value) EXCLUDES(mutex) {
    MutexLock lock(mutex);
    reply = std::move(value);
    changed.notify_all();
  }
  void cancel() EXCLUDES(mutex) {
    MutexLock lock(mutex);
    is_cancelled = true;
    changed.notify_all();
  }
};

// True: the reply is there.
bool await_reply(AwaitedReply& awaited, Clock& clock, Seconds deadline) {
  constexpr Seconds kHour{3600};
  const Waiting waiting("the reply of another task");
  MutexLock lock(awaited.mutex);
  while (!awaited.reply && !awaited.is_cancelled && (deadline.count() == 0 || clock.now() < deadline)) {
    // wait: for the reply, a cancel, the deadline; without one the transport ends the call
    clock.wait_until(awaited.changed, awaited.mutex, deadline.count() != 0 ? deadline : clock.now() + kHour);
  }
  return awaited.reply.has_value();
}

void end_wait(OutgoingCall& call, Clock& clock, const WaitLimits& limits) {
  if (limits.cancellation == nullptr || !limits.cancellation->cancelled()) {
    call.give_up_late(clock.now());
    return;
  }
  try {
    limits.cancellation->check();
  } catch (const CancelledError& error) {
    call.cancel(error.what());
  }
}

}  // namespace

Message call_and_wait(Transport& transport, CallRequest request, const WaitLimits& limits) {
  Clock& clock = transport.clock();
  const auto awaited = std::make_shared<AwaitedReply>();
  std::optional<Cancellation::Watch> watch;
  if (limits.cancellation != nullptr) watch.emplace(*limits.cancellation, [&] { awaited->cancel(); });
  if (limits.deadline.count() != 0) request.time_left = limits.deadline - clock.now();
  const auto call = transport.start(std::move(request), [awaited](CallReply reply) { awaited->set(std::move(reply)); });
  // An ended call has its reply, or will have it in a moment: its callback is under way.
  if (!await_reply(*awaited, clock, limits.deadline)) {
    end_wait(*call, clock, limits);
    MutexLock lock(awaited->mutex);
    while (!awaited->reply) awaited->changed.wait(awaited->mutex);  // wait: the callback that is under way
  }
  MutexLock lock(awaited->mutex);
  if (awaited->reply->error != nullptr) std::rethrow_exception(awaited->reply->error);
  return std::move(awaited->reply->message);
}

}  // namespace longhaul
