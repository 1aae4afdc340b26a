#pragma once

#include <optional>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"

namespace longhaul {

// That a chief has ended its training, for those who train on: nobody saves their steps. Any thread may call.
class EndedTraining {
 public:
  // Other tasks make their last steps meanwhile.
  static constexpr Seconds kLastSteps{10};

  void note(const std::string& chief, Seconds now) EXCLUDES(mutex_);
  void begins(const std::string& task) EXCLUDES(mutex_);  // a session of that task: of a chief that is back, perhaps

  // The chief that has ended the training kLastSteps ago, or earlier; else "".
  std::string by(Seconds now) const EXCLUDES(mutex_);

 private:
  struct End {
    std::string chief;
    Seconds at{0};
  };
  mutable Mutex mutex_;
  std::optional<End> end_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
