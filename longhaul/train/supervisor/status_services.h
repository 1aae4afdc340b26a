#pragma once

#include <memory>

#include "longhaul/session/session.h"
#include "longhaul/train/coordination/looper_thread.h"
#include "longhaul/train/status/run_status.h"
#include "longhaul/train/supervisor/supervisor_services.h"

namespace longhaul {

// Tells the status page the global step, once a second.
class StepLookService : public LooperThread {
 public:
  // The step is valid.
  StepLookService(const Coordinator& coord, std::shared_ptr<Session> session, Output global_step,
                  std::shared_ptr<RunStatus> status);

 protected:
  void run_loop() override;
  void stop_loop() override { run_loop(); }

 private:
  const std::shared_ptr<Session> session_;
  const Output global_step_;
  const std::shared_ptr<RunStatus> status_;
};

// The requests for checkpoints are those of POST /checkpoint.
class PageSaveService : public RequestedSaveService {
 public:
  // The context has a status.
  explicit PageSaveService(std::shared_ptr<const ServiceContext> context);

 protected:
  bool has_request() override { return context().status->has_save_request(); }
  bool take_request() override { return context().status->take_save_request(); }

 private:
  const std::shared_ptr<const Coordinator> serves_;
};

}  // namespace longhaul
