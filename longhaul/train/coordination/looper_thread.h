#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "longhaul/train/coordination/coordinator.h"

namespace longhaul {

// A coordinator's thread that repeats one action until a stop is requested; an exception from it requests the stop.
//
// With an interval the first call comes immediately and the n-th is due n intervals later (late calls are caught up);
// without one, calls follow each other without pause. To keep state, or to act at the start and the end, derive and
// override. Objects must live in shared_ptrs, because the thread holds one to itself.
//
//   LooperThread::loop(coord, Seconds{60}, [] { report(); });
class LooperThread : public std::enable_shared_from_this<LooperThread> {
 public:
  explicit LooperThread(Coordinator coord, std::optional<Seconds> interval, std::function<void()> target = {},
                        std::string name = "looper");
  virtual ~LooperThread() = default;
  LooperThread(const LooperThread&) = delete;
  LooperThread& operator=(const LooperThread&) = delete;

  // Makes one and starts it.
  static std::shared_ptr<LooperThread> loop(Coordinator coord, std::optional<Seconds> interval,
                                            std::function<void()> target, std::string name = "looper");

  void start();  // once: FailedPreconditionError otherwise

  const Coordinator& coord() const { return coord_; }

 protected:
  // All on the thread. start_loop() comes before the first call; stop_loop() after the last, unless one of them threw.
  virtual void start_loop() {}
  virtual void run_loop();
  virtual void stop_loop() {}
  // The time from one call to the next, asked after each call; the constructor's interval unless overridden. Not called
  // without one.
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
