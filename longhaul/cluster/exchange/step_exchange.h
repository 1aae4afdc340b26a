#pragma once

#include <string>
#include <vector>

#include "longhaul/base/cancellation.h"
#include "longhaul/base/clock.h"
#include "longhaul/cluster/exchange/step_store.h"
#include "longhaul/cluster/transport/transport.h"

namespace longhaul {

// What other tasks have sent to the parts of steps that run on this one. A sender pushes its bundles (StepSender); each
// is kept until the part asks for it, or dropped if the step is over. Any thread may call.
//
//   unknown --deliver, begin--> open --abort--> aborted --end--> over
//                                 \--------------end------------/
class StepExchange {
 public:
  struct Bundle {
    int64_t step = 0;
    int32_t id = 0;
    std::string from;  // the sender, for messages
  };

  explicit StepExchange(Clock& clock, const ExchangeOptions& options = {}) : clock_(clock), store_(options) {}

  // Takes a bundle in. A repetition counts once, however late it comes. `answer` is called once, without a lock: at
  // once, or when there is room (max_buffered). A step in which a part waits for a bundle always has room, so senders
  // and receivers never wait for each other in a circle. AbortedError: another process has delivered that bundle.
  // UnavailableError: it was stopped.
  void deliver(int64_t step, int32_t bundle, const IncomingCall::Caller& sender, Message message, DeliveryAnswer answer)
      EXCLUDES(mutex_);

  // A part of the step runs here, so it stays until end(). False: it is over.
  bool begin(int64_t step) EXCLUDES(mutex_);

  // Waits for a bundle, which may be taken once. Begins the step. The wait ends with
  //   - ConsequenceError: the step was aborted, with the code and the text of its error, or is over
  //   - DeadlineExceededError, which names the sender, or CancelledError: `limits`
  std::vector<Tensor> receive(const Bundle& bundle, const WaitLimits& limits) EXCLUDES(mutex_);

  // From now on the step's deliveries are answered, however much is buffered: its part waits for what comes after them.
  void answer_all(int64_t step) EXCLUDES(mutex_) { add_receiver(step); }

  // Ends the step's waits and drops its bundles. The first error is kept; one that is no consequence replaces one that
  // is. Nothing happens if the step is over.
  void abort(int64_t step, std::exception_ptr error) EXCLUDES(mutex_);
  std::exception_ptr error_of(int64_t step) const EXCLUDES(mutex_);  // null: it was not aborted

  // The step is over, well or not: all about it is forgotten, except that it is over.
  void end(int64_t step) EXCLUDES(mutex_);

  // Aborts all steps, and refuses what comes later, with UnavailableError.
  void stop(const std::string& why) EXCLUDES(mutex_);

  ExchangeCounts counts() const EXCLUDES(mutex_);

 private:
  StepStore::Answers changed() REQUIRES(mutex_);  // wakes the waits; returns what is to be answered without the lock
  void add_receiver(int64_t step) EXCLUDES(mutex_);
  bool may_come(const Bundle& bundle) const REQUIRES(mutex_);  // it is neither here nor impossible
  std::exception_ptr why_not(const Bundle& bundle, bool is_cancelled) const REQUIRES(mutex_);

  Clock& clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  StepStore store_ GUARDED_BY(mutex_);
  std::exception_ptr stopped_ GUARDED_BY(mutex_);
};

// Answers the task's Deliver calls with the exchange, which it keeps.
void serve_deliver(Transport& transport, std::shared_ptr<StepExchange> exchange);

}  // namespace longhaul
