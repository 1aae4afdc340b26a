#include "longhaul/grpc/transport/run_later.h"

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>

#include "longhaul/grpc/transport/callback_scope.h"

namespace longhaul {

// The alarm deletes itself.
void run_later(Seconds time, std::function<void()> body) {
  const gpr_timespec wait = gpr_time_from_micros(static_cast<int64_t>(time.count() * 1e6), GPR_TIMESPAN);
  auto* const alarm = new grpc::Alarm;
  alarm->Set(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), wait), [alarm, body = std::move(body)](bool) {
    const CallbackScope scope;
    body();
    delete alarm;
  });
}

}  // namespace longhaul
