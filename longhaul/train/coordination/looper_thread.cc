#include "longhaul/train/coordination/looper_thread.h"

namespace longhaul {

LooperThread::LooperThread(Coordinator coord, std::optional<Seconds> interval, std::function<void()> target,
                           std::string name)
    : coord_(std::move(coord)), interval_(interval), target_(std::move(target)), name_(std::move(name)) {}

std::shared_ptr<LooperThread> LooperThread::loop(Coordinator coord, std::optional<Seconds> interval,
                                                 std::function<void()> target, std::string name) {
  auto looper = std::make_shared<LooperThread>(std::move(coord), interval, std::move(target), std::move(name));
  looper->start();
  return looper;
}

void LooperThread::start() {
  if (started_.exchange(true)) throw FailedPreconditionError("thread " + name_ + " can only be started once");
  coord_.start_thread(name_, [self = shared_from_this()] { self->run(); });
}

void LooperThread::run_loop() {
  if (target_) target_();
}

void LooperThread::run() {
  start_loop();
  if (!interval_) {
    while (!coord_.should_stop()) run_loop();
  } else {
    Seconds due = coord_.clock().now();
    // wait: the interval, whose reason is where the looper is made
    while (!coord_.wait_for_stop_until(due)) {
      run_loop();
      due += next_interval();
    }
  }
  stop_loop();
}

}  // namespace longhaul
