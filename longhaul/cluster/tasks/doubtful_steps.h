#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/cluster/transport/transport.h"
#include "longhaul/proto/cluster_service.pb.h"

namespace longhaul {

// The steps of a session that failed, but were committed, or may have been: whoever would make such a step again asks
// here what became of it. The tasks know it for two minutes after the session's end. Any thread.
class DoubtfulSteps {
 public:
  // The transport must outlive it.
  explicit DoubtfulSteps(Transport& transport) : transport_(transport) {}

  // `committing`: the tasks that take part in its commit. The last 64 steps are kept.
  void add(int64_t step, std::vector<proto::Participant> committing) EXCLUDES(mutex_);

  // As in StepFates. If a task has another process by now, the step counts as not committed: what it has written there
  // is gone, and the model is set back.
  StepFate find_fate(int64_t step, Seconds at_most) EXCLUDES(mutex_);

 private:
  struct Doubt {
    int64_t step = 0;
    std::vector<proto::Participant> committing;
    Seconds since{0};
  };

  std::optional<Doubt> find(int64_t step) const EXCLUDES(mutex_);
  StepFate ask(const Doubt& doubt, Seconds until);
  StepFate said(const Doubt& doubt, const CallReply& reply) const;

  Transport& transport_;
  mutable Mutex mutex_;
  std::deque<Doubt> doubts_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
