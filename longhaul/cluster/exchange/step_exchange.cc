#include "longhaul/cluster/exchange/step_exchange.h"

#include <fmt/format.h>

#include "longhaul/base/waiting.h"
#include "longhaul/cluster/transport/methods.h"
#include "longhaul/cluster/transport/task_errors.h"
#include "longhaul/proto/cluster_service.pb.h"

namespace longhaul {
namespace {

std::exception_ptr step_is_over(int64_t step) {
  return std::make_exception_ptr(ConsequenceError(Code::kAborted, fmt::format("step {} is over on this task", step)));
}

void call_all(const StepStore::Answers& answers) {
  for (const auto& [answer, is_over] : answers) answer(is_over);
}

}  // namespace

StepStore::Answers StepExchange::changed() {
  changed_.notify_all();
  return store_.take_answers();
}

void StepExchange::deliver(int64_t step, int32_t bundle, const IncomingCall::Caller& sender, Message message,
                           DeliveryAnswer answer) {
  std::exception_ptr refused;
  StepStore::Answers answers;
  {
    MutexLock lock(mutex_);
    refused = stopped_;
    if (refused == nullptr) {
      refused = store_.deliver(step, bundle, sender, std::move(message), std::move(answer), clock_.now());
    }
    answers = changed();
  }
  call_all(answers);
  if (refused != nullptr) std::rethrow_exception(refused);
}

bool StepExchange::begin(int64_t step) {
  bool has_begun = false;
  StepStore::Answers answers;
  {
    MutexLock lock(mutex_);
    if (stopped_ != nullptr) std::rethrow_exception(stopped_);
    has_begun = store_.begin(step, clock_.now());
    answers = changed();
  }
  call_all(answers);
  return has_begun;
}

std::vector<Tensor> StepExchange::receive(const Bundle& bundle, const WaitLimits& limits) {
  if (!begin(bundle.step)) std::rethrow_exception(step_is_over(bundle.step));
  bool is_cancelled = false;  // under the lock
  std::optional<Cancellation::Watch> watch;
  if (limits.cancellation != nullptr) {
    watch.emplace(*limits.cancellation, [&] {
      MutexLock lock(mutex_);
      is_cancelled = true;
      changed_.notify_all();
    });
  }
  add_receiver(bundle.step);
  std::vector<Tensor> tensors;
  std::exception_ptr error;
  StepStore::Answers answers;
  {
    constexpr Seconds kHour{3600};
    const Seconds deadline = limits.deadline;
    const Waiting waiting("values of a step from", bundle.from);
    MutexLock lock(mutex_);
    while (may_come(bundle) && !is_cancelled && (deadline.count() == 0 || clock_.now() < deadline)) {
      // wait: for the bundle, the step's end or abort, a cancel, the deadline
      clock_.wait_until(changed_, mutex_, deadline.count() != 0 ? deadline : clock_.now() + kHour);
    }
    store_.add_receiver(bundle.step, -1);
    if (store_.has(bundle.step, bundle.id)) {
      tensors = store_.take(bundle.step, bundle.id);
    } else {
      error = why_not(bundle, is_cancelled);
    }
    answers = changed();
  }
  call_all(answers);
  if (error != nullptr) std::rethrow_exception(error);
  return tensors;
}

void StepExchange::add_receiver(int64_t step) {
  StepStore::Answers answers;
  {
    MutexLock lock(mutex_);
    store_.add_receiver(step, 1);
    answers = changed();
  }
  call_all(answers);
}

bool StepExchange::may_come(const Bundle& bundle) const {
  return !store_.has(bundle.step, bundle.id) && !store_.was_taken(bundle.step, bundle.id) &&
         !store_.is_over(bundle.step) && store_.error_of(bundle.step) == nullptr;
}

std::exception_ptr StepExchange::why_not(const Bundle& bundle, bool is_cancelled) const {
  if (const std::exception_ptr error = store_.error_of(bundle.step)) {
    return std::make_exception_ptr(ConsequenceError(error));
  }
  if (store_.is_over(bundle.step)) return step_is_over(bundle.step);
  const std::string what = fmt::format("bundle {} of step {} from task {}", bundle.id, bundle.step, bundle.from);
  if (store_.was_taken(bundle.step, bundle.id)) {
    return std::make_exception_ptr(InternalError(what + " is received twice"));
  }
  if (is_cancelled) return std::make_exception_ptr(CancelledError("the wait for " + what + " was cancelled"));
  return std::make_exception_ptr(DeadlineExceededError(what + " has not come before the deadline of the step"));
}

void StepExchange::abort(int64_t step, std::exception_ptr error) {
  StepStore::Answers answers;
  {
    MutexLock lock(mutex_);
    store_.abort(step, std::move(error), clock_.now());
    answers = changed();
  }
  call_all(answers);
}

std::exception_ptr StepExchange::error_of(int64_t step) const {
  MutexLock lock(mutex_);
  return store_.error_of(step);
}

void StepExchange::end(int64_t step) {
  StepStore::Answers answers;
  {
    MutexLock lock(mutex_);
    store_.end(step);
    answers = changed();
  }
  call_all(answers);
}

void StepExchange::stop(const std::string& why) {
  StepStore::Answers answers;
  {
    MutexLock lock(mutex_);
    if (stopped_ == nullptr) stopped_ = std::make_exception_ptr(UnavailableError("the task was stopped: " + why));
    store_.abort_all(stopped_);
    answers = changed();
  }
  call_all(answers);
}

ExchangeCounts StepExchange::counts() const {
  MutexLock lock(mutex_);
  return store_.counts();
}

void serve_deliver(Transport& transport, std::shared_ptr<StepExchange> exchange) {
  transport.serve(methods::kDeliver, [exchange = std::move(exchange)](std::shared_ptr<IncomingCall> call) {
    const auto request = header_of<proto::DeliverRequest>(call->request(), "Deliver from " + call->caller().task);
    exchange->deliver(request.step(), request.bundle(), call->caller(), call->take_request(), [call](bool is_over) {
      proto::DeliverReply reply;
      reply.set_is_over(is_over);
      call->reply(to_message(reply));
    });
  });
}

}  // namespace longhaul
