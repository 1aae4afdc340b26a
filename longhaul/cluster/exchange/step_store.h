#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/cluster/exchange/step_ring.h"
#include "longhaul/cluster/transport/incoming_call.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// How much a task keeps for parts of steps.
struct ExchangeOptions {
  uint64_t max_buffered = uint64_t{1} << 30;  // bytes; above, deliveries are answered late, so that senders stop
  size_t steps_remembered = 100'000;          // that are over
  Seconds unclaimed{60};                      // a step that nobody begins is over after it: its master has died
};

struct ExchangeCounts {
  size_t steps = 0;        // open or aborted
  size_t bundles = 0;      // that wait to be asked for
  uint64_t bytes = 0;      // of these
  size_t unanswered = 0;   // deliveries that wait for room
  uint64_t delivered = 0;  // since the start
  uint64_t repeated = 0;   // of deliveries that had been made
  uint64_t dropped = 0;    // for steps that are over or aborted
};

// Tells the sender of a bundle. `is_over`: the values were dropped.
using DeliveryAnswer = std::function<void(bool is_over)>;

// What a StepExchange knows, without its lock and its waits. What is to be answered is collected: take_answers() gives
// it to the caller, who calls it without the lock.
class StepStore {
 public:
  using Answers = std::vector<std::pair<DeliveryAnswer, bool>>;

  explicit StepStore(const ExchangeOptions& options) : options_(options), over_(options.steps_remembered) {}

  // Null, or why it is refused: AbortedError if another process has delivered the bundle.
  std::exception_ptr deliver(int64_t step, int32_t bundle, const IncomingCall::Caller& sender, Message message,
                             DeliveryAnswer answer, Seconds now);
  bool begin(int64_t step, Seconds now);  // false: it is over

  // For a part that waits: while it does, the step's deliveries are answered.
  void add_receiver(int64_t step, int by);
  bool has(int64_t step, int32_t bundle) const;            // and it was not taken
  std::vector<Tensor> take(int64_t step, int32_t bundle);  // if it has it
  bool was_taken(int64_t step, int32_t bundle) const;

  void abort(int64_t step, std::exception_ptr error, Seconds now);
  void abort_all(const std::exception_ptr& error);
  std::exception_ptr error_of(int64_t step) const;
  void end(int64_t step);
  bool is_over(int64_t step) const { return over_.contains(step); }

  Answers take_answers() { return std::exchange(answers_, {}); }
  const ExchangeCounts& counts() const { return counts_; }

 private:
  struct Delivery {
    IncomingCall::Caller sender;
    std::vector<Tensor> tensors;
    uint64_t bytes = 0;
    bool is_taken = false;
    std::vector<DeliveryAnswer> waiting;
  };
  struct Step {
    std::map<int32_t, Delivery> bundles;
    std::exception_ptr error;
    int receivers = 0;
    bool has_begun = false;
  };

  Step& open(int64_t step, Seconds now);
  const Delivery* find(int64_t step, int32_t bundle) const;
  void count_taken(Delivery& delivery);
  void answer(Delivery& delivery, bool is_over);
  void answer_or_wait(const Step& step, Delivery& delivery, DeliveryAnswer answer);
  void answer_if_room();
  void drop(Step& step);
  void end_unclaimed(Seconds now);

  const ExchangeOptions options_;
  std::map<int64_t, Step> steps_;
  StepRing over_;
  std::deque<std::pair<Seconds, int64_t>> unclaimed_;  // in the order of time
  ExchangeCounts counts_;
  Answers answers_;
};

}  // namespace longhaul
