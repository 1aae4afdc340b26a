#include "longhaul/cluster/transport/call_group.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "longhaul/base/waiting.h"
#include "longhaul/cluster/transport/task_errors.h"

namespace longhaul {

Seconds pause_before(int attempt) {
  constexpr Seconds kFirst{0.01}, kLongest{1};
  if (attempt <= 1) return Seconds{0};
  return std::min(kLongest, kFirst * std::exp2(std::min(attempt - 2, 30)));
}

// Shared with the calls, which may end after the group.
struct CallGroup::State : std::enable_shared_from_this<State> {
  struct Call {
    CallRequest request;
    Seconds deadline{0};
    Seconds began{0};
    int attempts = 0;
    bool is_given_up = false;
    std::shared_ptr<OutgoingCall> handle;
  };

  State(Transport& the_transport, Seconds the_timeout, std::function<void()> ended)
      : transport(the_transport), timeout(the_timeout), on_ended(std::move(ended)) {}

  size_t add(CallRequest request, Seconds deadline) EXCLUDES(mutex) {
    MutexLock lock(mutex);
    calls.push_back({.request = std::move(request), .deadline = deadline, .began = transport.clock().now()});
    return calls.size() - 1;
  }

  void send(size_t number) EXCLUDES(mutex) {
    CallRequest request;
    int attempt = 0;
    {
      MutexLock lock(mutex);
      Call& call = calls[number];
      attempt = ++call.attempts;
      request = call.request;
      request.pause = pause_before(attempt);
      if (call.deadline.count() != 0) request.time_left = call.deadline - transport.clock().now();
    }
    keep(number, attempt, transport.start(std::move(request), [self = shared_from_this(), number](CallReply reply) {
      self->end_or_repeat(number, std::move(reply));
    }));
  }

  void keep(size_t number, int attempt, std::shared_ptr<OutgoingCall> handle) EXCLUDES(mutex) {
    bool is_given_up = false;
    {
      MutexLock lock(mutex);
      Call& call = calls[number];
      is_given_up = call.is_given_up;
      if (call.attempts == attempt && !handle->has_ended()) call.handle = handle;  // else a later attempt has its own
    }
    if (is_given_up) handle->cancel("nobody waits for it");
  }

  void end_or_repeat(size_t number, CallReply reply) EXCLUDES(mutex) {
    if (is_to_be_repeated(number, reply)) return send(number);
    {
      MutexLock lock(mutex);
      ended.push_back({number, std::move(reply)});
      changed.notify_all();
    }
    if (on_ended) on_ended();
  }

  bool is_to_be_repeated(size_t number, const CallReply& reply) EXCLUDES(mutex) {
    MutexLock lock(mutex);
    Call& call = calls[number];
    call.handle = nullptr;
    return reply.is_broken && !call.is_given_up &&
           transport.clock().now() + pause_before(call.attempts + 1) < call.began + timeout;
  }

  void give_up(size_t number) EXCLUDES(mutex) {
    std::shared_ptr<OutgoingCall> handle;
    {
      MutexLock lock(mutex);
      calls[number].is_given_up = true;
      handle = calls[number].handle;
    }
    if (handle != nullptr) handle->cancel("nobody waits for it");
  }

  // Of another wait, which had other limits.
  void forget_cancel() EXCLUDES(mutex) {
    MutexLock lock(mutex);
    is_cancelled = false;
  }

  void wake() EXCLUDES(mutex) {
    MutexLock lock(mutex);
    is_cancelled = true;
    changed.notify_all();
  }

  Transport& transport;
  const Seconds timeout;
  const std::function<void()> on_ended;
  Mutex mutex;
  CondVar changed;
  std::vector<Call> calls GUARDED_BY(mutex);
  std::deque<Ended> ended GUARDED_BY(mutex);
  bool is_cancelled GUARDED_BY(mutex) = false;
};

CallGroup::CallGroup(Transport& transport, Seconds timeout, std::function<void()> ended)
    : transport_(transport), timeout_(timeout), state_(std::make_shared<State>(transport, timeout, std::move(ended))) {}

CallGroup::~CallGroup() {
  for (size_t call = 0; call < returned_.size(); ++call) state_->give_up(call);
}

size_t CallGroup::start(CallRequest request, Seconds deadline) {
  const size_t number = state_->add(std::move(request), deadline);
  returned_.push_back(false);
  state_->send(number);
  return number;
}

std::optional<CallGroup::Ended> CallGroup::next(const WaitLimits& limits) {
  constexpr Seconds kHour{3600};
  if (under_way() == 0) return std::nullopt;
  state_->forget_cancel();
  std::optional<Cancellation::Watch> watch;
  if (limits.cancellation != nullptr) watch.emplace(*limits.cancellation, [state = state_] { state->wake(); });
  Clock& clock = transport_.clock();
  const Waiting waiting("replies of other tasks");
  MutexLock lock(state_->mutex);
  while (state_->ended.empty()) {
    if (state_->is_cancelled || (limits.deadline.count() != 0 && clock.now() >= limits.deadline)) return std::nullopt;
    // wait: for a reply, a cancel, the deadline; without one the transport ends the calls
    clock.wait_until(state_->changed, state_->mutex,
                     limits.deadline.count() != 0 ? limits.deadline : clock.now() + kHour);
  }
  Ended ended = std::move(state_->ended.front());
  state_->ended.pop_front();
  returned_[ended.call] = true;
  return ended;
}

size_t CallGroup::under_way() const {
  return static_cast<size_t>(std::count(returned_.begin(), returned_.end(), false));
}

bool CallGroup::has_ended(size_t call) const {
  return returned_[call];
}

void CallGroup::give_up(size_t call) {
  state_->give_up(call);
}

void CallGroup::leave() {
  state_ = std::make_shared<State>(transport_, timeout_, state_->on_ended);
  returned_.clear();
}

std::vector<Message> call_all(Transport& transport, std::vector<CallRequest> requests, const WaitLimits& limits) {
  const Seconds began = transport.clock().now();
  CallGroup calls(transport);
  std::vector<Message> replies(requests.size());
  for (const CallRequest& request : requests) calls.start(request, limits.deadline);
  for (size_t i = 0; i < requests.size(); ++i) {
    auto ended = calls.next(limits);
    if (!ended) {
      if (limits.cancellation != nullptr) limits.cancellation->check();
      size_t silent = 0;
      while (calls.has_ended(silent)) ++silent;
      const std::string& task = requests[silent].task;
      throw DeadlineExceededError(
          unanswered_text(task, transport.address_of(task), requests[silent].method, transport.clock().now() - began));
    }
    if (ended->reply.error != nullptr) std::rethrow_exception(ended->reply.error);
    replies[ended->call] = std::move(ended->reply.message);
  }
  return replies;
}

}  // namespace longhaul
