#pragma once

#include <string>
#include <utility>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"
#include "longhaul/cluster/security/transport_security.h"

namespace longhaul {

// Says in the log when files that are renewed while a task runs have become unusable. Whoever reads them for TLS keeps
// the old ones and tells nobody, or fails each handshake with words that name no file; so this looks at the files with
// check_security(), at most once in `between`. An error is logged when a problem is there that was not there the last
// time, and a line when it is gone. Any thread may call; has no thread of its own.
//
//   RenewalWatch watch(security, clock);
//   watch.look();  // at each failed handshake, and now and then
class RenewalWatch {
 public:
  explicit RenewalWatch(TransportSecurity security, Clock& clock = Clock::real(), Seconds between = Seconds{60})
      : security_(std::move(security)), clock_(clock), between_(between) {}

  // The problem that the files have, as of the last look: "" for none. Reads files, unless it looked lately.
  std::string look() EXCLUDES(mutex_);

 private:
  bool take_turn() EXCLUDES(mutex_);
  std::string problem() const;

  const TransportSecurity security_;
  Clock& clock_;
  const Seconds between_;
  Mutex mutex_;
  bool looked_ GUARDED_BY(mutex_) = false;
  Seconds looked_at_ GUARDED_BY(mutex_){0};
  std::string problem_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
