#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/cancellation.h"
#include "longhaul/cluster/transport/transport.h"

namespace longhaul {

// Sends what a part of a step has for other tasks, and sees to it that each bundle arrives once: a delivery whose
// connection breaks is repeated to the same process. One for each part and step.
//
//   StepSender sender(transport, step, limits);
//   sender.send({task, incarnation}, 3, tensors);  // ... as the part runs
//   sender.finish();
//
// One thread calls send() and finish().
class StepSender {
 public:
  struct Options {
    uint64_t max_unanswered = uint64_t{64} << 20;  // bytes; send() waits while there are more
    Seconds repeat_after{10};                      // a delivery is repeated that long after its first attempt
    // Told of the first error at once, while the part may wait for something else; on any thread, without a lock. It
    // must own what it touches.
    std::function<void(std::exception_ptr)> failed{};
  };
  struct Peer {
    std::string task;
    uint64_t incarnation = 0;
  };

  // `limits` bounds the waits and the repetitions; they are those of the step.
  StepSender(Transport& transport, int64_t step, const WaitLimits& limits);
  StepSender(Transport& transport, int64_t step, const WaitLimits& limits, Options options);
  ~StepSender();  // gives up what is under way
  StepSender(const StepSender&) = delete;
  StepSender& operator=(const StepSender&) = delete;

  // Begins a delivery. Throws the first error of those before, as finish() does.
  void send(const Peer& peer, int32_t bundle, std::vector<Tensor> tensors);

  // Waits until all were answered. Throws the first error: UnavailableError or DeadlineExceededError ("task ... has not
  // answered Deliver for 10 s"), AbortedError (the peer was restarted), CancelledError, or what the peer has thrown.
  void finish();

 private:
  class Deliveries;
  void wait(uint64_t most_bytes, bool all);  // until no more is unanswered; `all`: nothing

  const int64_t step_;
  const WaitLimits limits_;
  const uint64_t max_unanswered_;
  const std::shared_ptr<Deliveries> deliveries_;
};

}  // namespace longhaul
