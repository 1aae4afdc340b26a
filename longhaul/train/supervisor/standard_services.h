#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "longhaul/train/supervisor/supervisor_services.h"
#include "longhaul/train/supervisor/weight_digest_service.h"
#include "longhaul/train/tenure/training_events.h"

namespace longhaul {

struct StandardServicesOptions {
  Preemption* preemption = nullptr;  // whose save signals are looked for; outlives the threads
  int64_t digest_every_n_steps = 0;  // 0: no digests
};

// The services that a Supervisor starts for one session: which of them there are, by what their context has, and in
// which order. Their threads end with a stop of the context's coordinator; the digests end with the object.
class StandardServices {
 public:
  StandardServices(std::shared_ptr<const ServiceContext> context, const StandardServicesOptions& options)
      : context_(std::move(context)), options_(options) {}

  // Once. Writes that the session starts, starts the digests, then the threads; returns those that a program may want
  // to know. Throws what the session does.
  std::vector<std::shared_ptr<LooperThread>> start(TrainingEvents& events);

 private:
  std::vector<std::shared_ptr<LooperThread>> make() const;

  const std::shared_ptr<const ServiceContext> context_;
  const StandardServicesOptions options_;
  std::unique_ptr<WeightDigestService> digests_;
};

}  // namespace longhaul
