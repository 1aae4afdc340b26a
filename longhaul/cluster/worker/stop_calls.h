#pragma once

#include <map>
#include <memory>
#include <optional>

#include "longhaul/base/clock.h"
#include "longhaul/cluster/transport/incoming_call.h"

namespace longhaul {

// The WaitForStop calls that wait for the task to announce its stop. Any thread may call.
class StopCalls : public std::enable_shared_from_this<StopCalls> {
 public:
  explicit StopCalls(Clock& clock) : clock_(clock) {}

  void add(std::shared_ptr<IncomingCall> call) EXCLUDES(mutex_);  // answers at once what comes after announce()
  // Answers all calls, with what is left of the grace, and returns how many. Of several, the one that ends first
  // counts.
  size_t announce(Seconds grace) EXCLUDES(mutex_);
  void stop() EXCLUDES(mutex_);  // ends the calls with UnavailableError
  size_t size() const EXCLUDES(mutex_);

 private:
  using Calls = std::map<const IncomingCall*, std::shared_ptr<IncomingCall>>;
  Calls take_all(std::optional<Seconds> end) EXCLUDES(mutex_);

  Clock& clock_;
  mutable Mutex mutex_;
  Calls calls_ GUARDED_BY(mutex_);
  std::optional<Seconds> end_ GUARDED_BY(mutex_);  // of the grace; absent: nothing was announced
};

}  // namespace longhaul
