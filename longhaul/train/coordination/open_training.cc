#include "longhaul/train/coordination/open_training.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <vector>

#include "longhaul/base/log.h"
#include "longhaul/base/mutex.h"

namespace longhaul {

// Those of the process. It is never destroyed: exit() asks for it.
struct OpenTrainings {
  static OpenTrainings& of_process();

  bool any_here(const std::function<bool(const OpenTraining&)>& is_meant) REQUIRES(mutex) {
    return std::any_of(all.begin(), all.end(), [&](const OpenTraining* training) {
      return training->process_ == getpid() && is_meant(*training);
    });
  }
  bool any_with(const Coordinator& coord) REQUIRES(mutex) {
    return any_here([&](const OpenTraining& training) { return training.coord_.is_same(coord); });
  }
  bool any() REQUIRES(mutex) {
    return any_here([](const OpenTraining&) { return true; });
  }

  Mutex mutex;
  std::vector<const OpenTraining*> all GUARDED_BY(mutex);
};

namespace {

void tell_of_exit() {
  OpenTrainings& trainings = OpenTrainings::of_process();
  {
    MutexLock lock(trainings.mutex);
    if (!trainings.any()) return;
  }
  log_error(
      "the program calls exit() before the training run has ended: there is no last checkpoint, and the steps since "
      "the newest one are lost. Return from the training's body instead, or call request_stop() and then return");
}

}  // namespace

OpenTrainings& OpenTrainings::of_process() {
  static OpenTrainings& trainings = *new OpenTrainings;
  [[maybe_unused]] static const int is_registered = std::atexit(tell_of_exit);
  return trainings;
}

OpenTraining::OpenTraining(const Coordinator& coord) : coord_(coord), process_(getpid()) {
  OpenTrainings& trainings = OpenTrainings::of_process();
  MutexLock lock(trainings.mutex);
  trainings.all.push_back(this);
}

OpenTraining::~OpenTraining() {
  OpenTrainings& trainings = OpenTrainings::of_process();
  MutexLock lock(trainings.mutex);
  std::erase(trainings.all, this);
}

bool OpenTraining::is_only_elsewhere(const Coordinator& coord) {
  OpenTrainings& trainings = OpenTrainings::of_process();
  MutexLock lock(trainings.mutex);
  return trainings.any() && !trainings.any_with(coord);
}

}  // namespace longhaul
