#pragma once

#include <atomic>
#include <memory>

#include "longhaul/base/mutex.h"
#include "longhaul/cluster/worker/registered_part.h"
#include "longhaul/runtime/plan/run_place.h"

namespace longhaul {

// Where the part of a step is, for LookAtStep: which operation it runs, or what else it waits for. The part's thread
// says it without a lock or a look at a clock; so how long an operation runs is known only from the first look on.
class PartPlace {
 public:
  // The clock outlives it.
  PartPlace(std::shared_ptr<const RegisteredPart> part, Clock& clock)
      : part_(std::move(part)), clock_(clock), came_(clock.now()) {}

  // ---- The part's thread ----

  RunPlace& run() { return run_; }  // for the plan
  // Between the phases of the plan.
  void wait(proto::StepPlace place) {
    place_.store(place, std::memory_order_relaxed);
    run_.leave();
  }

  // ---- Any thread ----

  // All but the step's state.
  proto::LookAtStepReply look() EXCLUDES(mutex_);

 private:
  struct Seen {
    const Operation* op = nullptr;
    Seconds first{0};
  };
  Seconds looked_at(const Operation* op, Seconds now) EXCLUDES(mutex_);  // for how long, since the first look

  const std::shared_ptr<const RegisteredPart> part_;  // has the operations
  Clock& clock_;
  const Seconds came_;
  RunPlace run_;
  std::atomic<proto::StepPlace> place_{proto::PLACE_BEGINS};
  Mutex mutex_;
  Seen seen_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
