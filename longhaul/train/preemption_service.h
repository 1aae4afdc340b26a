#pragma once

#include <memory>

#include "longhaul/train/preemption.h"
#include "longhaul/train/supervisor_services.h"

namespace longhaul {

// Takes a checkpoint when a save signal asks for one, which it looks for ten times a second. One that fails is tried
// again when SaveAttempts says so, until the training stops.
class PreemptionService : public LooperThread {
 public:
  // `preemption` outlives the thread. The context has a saver.
  PreemptionService(std::shared_ptr<const ServiceContext> context, Preemption& preemption)
      : LooperThread(context->coord, Seconds{0.1}, {}, "lh-preemption"),
        context_(std::move(context)),
        preemption_(preemption) {}

 protected:
  void run_loop() override;

 private:
  const std::shared_ptr<const ServiceContext> context_;
  Preemption& preemption_;
  bool is_wanted_ = false;
};

}  // namespace longhaul
