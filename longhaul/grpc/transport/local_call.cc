#include "longhaul/grpc/transport/local_call.h"

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>

#include "longhaul/cluster/transport/task_errors.h"
#include "longhaul/grpc/transport/callback_scope.h"
#include "longhaul/grpc/transport/run_later.h"

namespace longhaul {
namespace {

void run_soon(std::shared_ptr<CallsInGrpc> calls, std::function<void()> body) {
  calls->add();
  run_later(Seconds{0}, [calls = std::move(calls), body = std::move(body)] {
    body();
    calls->remove();
  });
}

// Kept by its OutgoingCall until that has ended, and by its IncomingCall.
class LocalCall : public std::enable_shared_from_this<LocalCall> {
 public:
  LocalCall(std::shared_ptr<OutgoingCall> call, proto::CallHeader header, Message message, LocalDispatch dispatch,
            std::shared_ptr<CallsInGrpc> calls, Clock& clock)
      : call_(std::move(call)),
        header_(std::move(header)),
        message_(std::move(message)),
        dispatch_(std::move(dispatch)),
        calls_(std::move(calls)),
        clock_(clock) {}

  void start() {
    if (header_.time_left_micros() > 0) set_deadline();
    call_->on_give_up([self = shared_from_this()] { self->end_incoming(); });
    run_soon(calls_, [self = shared_from_this()] { self->arrive(); });
  }

 private:
  void set_deadline() {
    const gpr_timespec left = gpr_time_from_micros(header_.time_left_micros(), GPR_TIMESPAN);
    deadline_.emplace().Set(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), left), [weak = weak_from_this()](bool is_over) {
      const CallbackScope scope;
      const std::shared_ptr<LocalCall> self = weak.lock();
      if (!is_over || self == nullptr || self->call_->has_ended()) return;
      self->call_->give_up_late(self->clock_.now());
    });
  }

  void arrive() EXCLUDES(mutex_) {
    if (call_->has_ended()) return;
    const auto incoming = dispatch_(header_, std::move(message_),
                                    [self = shared_from_this()](CallReply reply) { self->reply(std::move(reply)); });
    {
      MutexLock lock(mutex_);
      incoming_ = incoming;
    }
    if (call_->has_ended()) end_incoming();  // before it could be told
  }

  void end_incoming() EXCLUDES(mutex_) {
    std::shared_ptr<IncomingCall> incoming;
    {
      MutexLock lock(mutex_);
      incoming = incoming_.lock();
    }
    if (incoming != nullptr) incoming->end_caller();
  }

  // Not on the thread that replies, which may have locks.
  void reply(CallReply reply) {
    if (call_->has_ended()) return;
    run_soon(calls_, [self = shared_from_this(), reply = std::move(reply)]() mutable {
      proto::ReplyHeader header;
      header.set_incarnation(reply.incarnation);
      if (reply.error != nullptr) *header.mutable_error() = to_error_body(reply.error);
      self->call_->end(header, std::move(reply.message));
    });
  }

  const std::shared_ptr<OutgoingCall> call_;
  const proto::CallHeader header_;
  Message message_;
  const LocalDispatch dispatch_;
  const std::shared_ptr<CallsInGrpc> calls_;
  Clock& clock_;
  std::optional<grpc::Alarm> deadline_;
  Mutex mutex_;
  std::weak_ptr<IncomingCall> incoming_ GUARDED_BY(mutex_);
};

}  // namespace

void start_local_call(std::shared_ptr<OutgoingCall> call, proto::CallHeader header, Message message,
                      LocalDispatch dispatch, std::shared_ptr<CallsInGrpc> calls, Clock& clock) {
  std::make_shared<LocalCall>(std::move(call), std::move(header), std::move(message), std::move(dispatch),
                              std::move(calls), clock)
      ->start();
}

}  // namespace longhaul
