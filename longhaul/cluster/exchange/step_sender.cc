#include "longhaul/cluster/exchange/step_sender.h"

#include <map>
#include <optional>

#include "longhaul/cluster/transport/call_group.h"
#include "longhaul/cluster/transport/methods.h"
#include "longhaul/cluster/transport/task_errors.h"
#include "longhaul/proto/cluster_service.pb.h"

namespace longhaul {
namespace {

struct OneDelivery {
  CallRequest request;
  uint64_t bytes = 0;
  Seconds began{0};
  int attempts = 0;
  std::shared_ptr<OutgoingCall> call;
};

}  // namespace

// Shared with the calls under way.
class StepSender::Deliveries : public std::enable_shared_from_this<Deliveries> {
 public:
  Deliveries(Transport& transport, Seconds deadline, Options options)
      : transport_(transport), deadline_(deadline), options_(std::move(options)) {}

  void start(CallRequest request) EXCLUDES(mutex_) {
    const uint64_t bytes = request.message.tensor_bytes();
    uint64_t id;
    {
      MutexLock lock(mutex_);
      if (error_ != nullptr || is_over_) return;
      id = ++last_id_;
      under_way_[id] = {std::move(request), bytes, transport_.clock().now(), 0, nullptr};
      bytes_ += bytes;
    }
    attempt(id);
  }

  // Until no more than that is unanswered; `all`: nothing at all. Returns why it ended earlier, or null.
  std::exception_ptr wait(uint64_t most_bytes, bool all, const bool& is_cancelled) EXCLUDES(mutex_) {
    constexpr Seconds kHour{3600};
    Clock& clock = transport_.clock();
    MutexLock lock(mutex_);
    while (error_ == nullptr && (all ? !under_way_.empty() : bytes_ > most_bytes)) {
      if (is_cancelled) return std::make_exception_ptr(CancelledError("the step was cancelled while it sent values"));
      if (deadline_.count() != 0 && clock.now() >= deadline_) {
        return std::make_exception_ptr(DeadlineExceededError(unanswered(under_way_.begin()->second)));
      }
      // wait: for answers, an error, a cancel, the deadline; the transport ends each call
      clock.wait_until(changed_, mutex_, deadline_.count() != 0 ? deadline_ : clock.now() + kHour);
    }
    return nullptr;
  }

  void wake(bool& flag) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    flag = true;
    changed_.notify_all();
  }

  // Ends all with this error, unless there is one, or none is under way.
  void fail(std::exception_ptr error) EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (error_ != nullptr || is_over_) return;
      error_ = error;
      changed_.notify_all();
    }
    if (options_.failed) options_.failed(error);
    give_up("the step has failed");
  }

  void end() EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      is_over_ = true;
    }
    give_up("the step is over");
  }

  std::exception_ptr error() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return error_;
  }

 private:
  void attempt(uint64_t id) EXCLUDES(mutex_) {
    CallRequest request;
    int number = 0;
    {
      MutexLock lock(mutex_);
      const auto found = under_way_.find(id);
      if (found == under_way_.end()) return;
      request = found->second.request;
      number = ++found->second.attempts;
      request.pause = pause_before(number);
    }
    if (deadline_.count() != 0) request.time_left = deadline_ - transport_.clock().now();
    const auto call = transport_.start(
        std::move(request), [self = shared_from_this(), id](CallReply reply) { self->ended(id, std::move(reply)); });
    if (!keep(id, number, call)) call->cancel("the step is over");
  }

  // False: it is no longer wanted.
  bool keep(uint64_t id, int attempt, const std::shared_ptr<OutgoingCall>& call) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto found = under_way_.find(id);
    if (found != under_way_.end() && found->second.attempts == attempt) found->second.call = call;
    return error_ == nullptr && !is_over_;
  }

  void ended(uint64_t id, CallReply reply) EXCLUDES(mutex_) {
    if (reply.error == nullptr) return remove(id);
    if (reply.is_broken && may_repeat(id)) return attempt(id);
    if (reply.is_broken) reply.error = broken_error(id);
    fail(reply.error);
    remove(id);
  }

  bool may_repeat(uint64_t id) const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto found = under_way_.find(id);
    return found != under_way_.end() && error_ == nullptr && !is_over_ &&
           transport_.clock().now() - found->second.began < options_.repeat_after;
  }

  std::exception_ptr broken_error(uint64_t id) const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto found = under_way_.find(id);
    return std::make_exception_ptr(
        UnavailableError(found == under_way_.end() ? "the delivery was given up" : unanswered(found->second)));
  }

  std::string unanswered(const OneDelivery& delivery) const REQUIRES(mutex_) {
    const std::string& task = delivery.request.task;
    return unanswered_text(task, transport_.address_of(task), delivery.request.method,
                           transport_.clock().now() - delivery.began);
  }

  void remove(uint64_t id) EXCLUDES(mutex_) {
    OneDelivery removed;  // its tensors are let go without the lock
    MutexLock lock(mutex_);
    const auto found = under_way_.find(id);
    if (found == under_way_.end()) return;
    bytes_ -= found->second.bytes;
    removed = std::move(found->second);
    under_way_.erase(found);
    changed_.notify_all();
  }

  void give_up(const std::string& why) EXCLUDES(mutex_) {
    std::vector<std::shared_ptr<OutgoingCall>> calls;
    {
      MutexLock lock(mutex_);
      for (const auto& [id, delivery] : under_way_) calls.push_back(delivery.call);
    }
    for (const auto& call : calls) {
      if (call != nullptr) call->cancel(why);
    }
  }

  Transport& transport_;
  const Seconds deadline_;
  const Options options_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<uint64_t, OneDelivery> under_way_ GUARDED_BY(mutex_);
  uint64_t last_id_ GUARDED_BY(mutex_) = 0;
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;
  std::exception_ptr error_ GUARDED_BY(mutex_);
  bool is_over_ GUARDED_BY(mutex_) = false;
};

StepSender::StepSender(Transport& transport, int64_t step, const WaitLimits& limits)
    : StepSender(transport, step, limits, Options{}) {}

StepSender::StepSender(Transport& transport, int64_t step, const WaitLimits& limits, Options options)
    : step_(step),
      limits_(limits),
      max_unanswered_(options.max_unanswered),
      deliveries_(std::make_shared<Deliveries>(transport, limits.deadline, std::move(options))) {}

StepSender::~StepSender() {
  deliveries_->end();
}

void StepSender::send(const Peer& peer, int32_t bundle, std::vector<Tensor> tensors) {
  wait(max_unanswered_, false);
  proto::DeliverRequest request;
  request.set_step(step_);
  request.set_bundle(bundle);
  deliveries_->start({.task = peer.task,
                      .method = methods::kDeliver,
                      .incarnation = peer.incarnation,
                      .message = to_message(request, std::move(tensors))});
}

void StepSender::finish() {
  wait(0, true);
}

void StepSender::wait(uint64_t most_bytes, bool all) {
  bool is_cancelled = false;  // under the lock of the deliveries
  std::exception_ptr why;
  {
    std::optional<Cancellation::Watch> watch;
    if (limits_.cancellation != nullptr) {
      watch.emplace(*limits_.cancellation, [&] { deliveries_->wake(is_cancelled); });
    }
    why = deliveries_->wait(most_bytes, all, is_cancelled);
  }
  if (why != nullptr) deliveries_->fail(why);
  if (const std::exception_ptr error = deliveries_->error()) std::rethrow_exception(error);
}

}  // namespace longhaul
