#include "longhaul/train/supervisor/status_services.h"

#include <utility>

#include "longhaul/base/log.h"

namespace longhaul {

StepLookService::StepLookService(const Coordinator& coord, std::shared_ptr<Session> session, Output global_step,
                                 std::shared_ptr<RunStatus> status)
    // wait: polls: each step would have to notify
    : LooperThread(coord, kStepLookSecs, {}, "lh-step-looks"),
      session_(std::move(session)),
      global_step_(std::move(global_step)),
      status_(std::move(status)) {}

// A session that fails is the business of who makes steps.
void StepLookService::run_loop() {
  try {
    status_->look(read_global_step(*session_, global_step_));
  } catch (const std::exception& error) {
    log_debug("the step is unknown to the status page: {}", error.what());
  }
}

PageSaveService::PageSaveService(std::shared_ptr<const ServiceContext> context)
    : RequestedSaveService(std::move(context), "lh-asked-saves"),
      serves_(this->context().status->serve_saves(this->context().coord)) {}

}  // namespace longhaul
