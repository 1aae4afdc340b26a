#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "longhaul/train/supervisor/supervisor_services.h"
#include "longhaul/train/supervisor/weight_digest_service.h"
#include "longhaul/train/tenure/training_events.h"

namespace longhaul {

struct StandardServicesOptions {
  Preemption* preemption = nullptr;  // whose save signals and deadline are heeded; outlives the threads
  int64_t digest_every_n_steps = 0;  // 0: no digests
};

// The services that a Supervisor starts for one session. The context decides which of them run, and the start order is
// fixed. Their threads end when the context's coordinator stops; the digests end when the object is destroyed.
class StandardServices {
 public:
  StandardServices(std::shared_ptr<const ServiceContext> context, const StandardServicesOptions& options)
      : context_(std::move(context)), options_(options) {}

  // Call once. Writes the start of the session to the events, starts the digests, then the threads; returns the threads
  // that a program may want to know. Throws what the session throws.
  std::vector<std::shared_ptr<LooperThread>> start(TrainingEvents& events);

 private:
  std::vector<std::shared_ptr<LooperThread>> make() const;

  const std::shared_ptr<const ServiceContext> context_;
  const StandardServicesOptions options_;
  std::unique_ptr<WeightDigestService> digests_;
};

}  // namespace longhaul
