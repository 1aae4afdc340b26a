#pragma once

#include <atomic>
#include <memory>

#include "longhaul/session/session.h"
#include "longhaul/session/stop_notice.h"

namespace longhaul {

// Whether a server of the session has announced that it stops, so that a checkpoint is due. One thread.
class SaveNotices {
 public:
  // Of this session from now on; one that cannot tell has none.
  void begin(Session& session) {
    notices_.reset();
    *is_noticed_ = false;
    StopNoticing* const noticing = session.capabilities().stop_noticing;
    if (noticing == nullptr) return;
    notices_ = noticing->notice_stops([is_noticed = is_noticed_](const StopNotice&) { *is_noticed = true; });
  }

  // Since the last call. Takes no lock.
  bool take() { return is_noticed_->load(std::memory_order_relaxed) && is_noticed_->exchange(false); }

 private:
  const std::shared_ptr<std::atomic<bool>> is_noticed_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<const void> notices_;  // null: there are none
};

}  // namespace longhaul
