#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "longhaul/train/coordination/coordinator.h"

namespace longhaul {

// A coordinator's thread that repeats one action until a stop is requested. An exception from the action requests the
// stop.
//
// With an interval the first call comes immediately and the n-th is due n intervals later (late calls are caught up);
// without one, calls follow each other without pause. To keep state, or to act at the start and the end, derive and
// override. An object must be owned by shared_ptrs, because its thread holds one to it.
//
//   LooperThread::loop(coord, Seconds{60}, [] { report(); });
class LooperThread : public std::enable_shared_from_this<LooperThread> {
 public:
  explicit LooperThread(Coordinator coord, std::optional<Seconds> interval, std::function<void()> target = {},
                        std::string name = "looper");
  virtual ~LooperThread() = default;
  LooperThread(const LooperThread&) = delete;
  LooperThread& operator=(const LooperThread&) = delete;

  // Creates a looper thread and starts it.
  static std::shared_ptr<LooperThread> loop(Coordinator coord, std::optional<Seconds> interval,
                                            std::function<void()> target, std::string name = "looper");

  void start();  // FailedPreconditionError: called twice

  const Coordinator& coord() const { return coord_; }

 protected:
  // All of these run on the thread. start_loop() is called before the first action; stop_loop() after the last, unless
  // the action threw.
  virtual void start_loop() {}
  virtual void run_loop();
  virtual void stop_loop() {}
  // Returns the time from one call of the action to the next: the constructor's interval, unless overridden. Called
  // after each action, but not if there is no interval.
  virtual Seconds next_interval() { return interval_.value(); }

 private:
  void run();

  const Coordinator coord_;
  const std::optional<Seconds> interval_;
  const std::function<void()> target_;
  const std::string name_;
  std::atomic<bool> started_{false};
};

}  // namespace longhaul
