#include "longhaul/cluster/worker/ended_training.h"

namespace longhaul {

void EndedTraining::note(const std::string& chief, Seconds now) {
  MutexLock lock(mutex_);
  end_ = End{chief, now};
}

void EndedTraining::begins(const std::string& task) {
  MutexLock lock(mutex_);
  if (end_ && end_->chief == task) end_.reset();
}

std::string EndedTraining::by(Seconds now) const {
  MutexLock lock(mutex_);
  return end_ && now >= end_->at + kLastSteps ? end_->chief : "";
}

}  // namespace longhaul
