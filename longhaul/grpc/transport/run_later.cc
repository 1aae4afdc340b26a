#include "longhaul/grpc/transport/run_later.h"

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>

#include "longhaul/grpc/transport/callback_scope.h"

namespace longhaul {
namespace {

// gRPC's timers count whole milliseconds, rounded up: what is due now would wait for one, if it were not due already.
gpr_timespec due_in(Seconds time) {
  if (time <= Seconds{0}) return gpr_inf_past(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_micros(static_cast<int64_t>(time.count() * 1e6), GPR_TIMESPAN));
}

}  // namespace

// The alarm deletes itself.
void run_later(Seconds time, std::function<void()> body) {
  auto* const alarm = new grpc::Alarm;
  alarm->Set(due_in(time), [alarm, body = std::move(body)](bool) {
    const CallbackScope scope;
    body();
    delete alarm;
  });
}

}  // namespace longhaul
