#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "longhaul/session/session.h"
#include "longhaul/session/stop_notice.h"
#include "longhaul/train/coordination/coordinator.h"
#include "longhaul/train/status/run_status.h"

namespace longhaul {

// Whether a server of the session has announced that it stops, or somebody has asked the status page for a checkpoint,
// so that one is due. One thread.
class SaveNotices {
 public:
  // Of this session from now on; one that cannot tell has none. `status` may be null: there is no page.
  void begin(Session& session, std::shared_ptr<RunStatus> status, const Coordinator& coord) {
    status_ = std::move(status);
    serves_ = status_ ? status_->serve_saves(coord) : nullptr;
    notices_.reset();
    *is_noticed_ = false;
    StopNoticing* const noticing = session.capabilities().stop_noticing;
    if (noticing == nullptr) return;
    notices_ = noticing->notice_stops([is_noticed = is_noticed_](const StopNotice&) { *is_noticed = true; });
  }

  // Since the last call. Takes no lock.
  bool take() {
    if (status_ && status_->take_save_request()) return true;
    return is_noticed_->load(std::memory_order_relaxed) && is_noticed_->exchange(false);
  }

 private:
  const std::shared_ptr<std::atomic<bool>> is_noticed_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<const void> notices_;  // null: there are none
  std::shared_ptr<RunStatus> status_;
  std::shared_ptr<const Coordinator> serves_;
};

}  // namespace longhaul
