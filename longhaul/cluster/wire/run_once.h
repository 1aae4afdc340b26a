#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/cancellation.h"
#include "longhaul/base/clock.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// What a master has answered to its clients: so a client that has lost an answer asks for it again, and its run is made
// once. A client gives each call a number of its own: TensorFlow's request_id, which is drawn at random. It may have
// several calls under way. The newest answers are kept, as long as they take no more than a limit together; of the last
// ten thousand calls it is known that they were made. Any thread.
//
//   new --call--> under way --> answered --newer answers take its place--> made --newer calls--> forgotten
//                     +--cancelled, not committed--> new
class RunOnce {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  static constexpr size_t kMostCalls = 10'000;

  explicit RunOnce(Clock& clock, uint64_t most_bytes = kMostBytes, size_t most_calls = kMostCalls)
      : clock_(clock), most_bytes_(most_bytes), most_calls_(most_calls) {}

  using Values = std::vector<Tensor>;
  using Run = std::function<Values(Cancellation* end)>;  // `end` ends it; it may be null
  // Makes the run, or returns what it returned or threw the first time; waits for it if it is under way, within
  // `limits`. Number 0: no repetition is expected, nothing is kept. AbortedError "... was received twice": it was made,
  // but its values are no longer kept.
  //
  // Each who asks may go: the cancellation of his `limits`. Once all have, the run is cancelled. Whoever asks later
  // gets its error, or makes the run anew if the error says that its step was not committed: other runs may have put
  // something into a queue.
  Values call(const std::string& client, uint64_t number, const WaitLimits& limits, const Run& run) EXCLUDES(mutex_);

  enum class Known { kNever, kUnderWay, kSucceeded, kFailed };  // kNever: or forgotten
  Known ask(const std::string& client, uint64_t number) const EXCLUDES(mutex_);

  void forget(const std::string& client) EXCLUDES(mutex_);  // it has gone
  size_t calls() const EXCLUDES(mutex_);                    // that are known

 private:
  using Key = std::pair<std::string, uint64_t>;  // client, number
  struct Answer {
    Key key;
    Cancellation end;  // of the run; used without the lock
    int asking = 0;    // who have not gone
    bool is_over = false;
    bool is_withdrawn = false;  // it was cancelled: whoever asks makes it anew
    bool is_dropped = false;    // made, without its values
    uint64_t bytes = 0;         // of the values
    std::exception_ptr error;
    Values values;
  };
  using AnswerPtr = std::shared_ptr<Answer>;

  class Asking;

  AnswerPtr begin(const Key& key, bool& is_new) EXCLUDES(mutex_);
  Values make(const AnswerPtr& answer, const Run& run) EXCLUDES(mutex_);
  void withdraw(const AnswerPtr& answer) REQUIRES(mutex_);
  void await(const Answer& answer, Seconds deadline, const bool& has_left) REQUIRES(mutex_);
  Values values_of(const Answer& answer) const REQUIRES(mutex_);
  // nullopt: it is withdrawn.
  std::optional<Values> answer_of(const Answer& answer, const WaitLimits& limits, const bool& has_left)
      EXCLUDES(mutex_);
  void forget_oldest() REQUIRES(mutex_);
  void keep_values(const AnswerPtr& answer, const Values& values) REQUIRES(mutex_);
  void drop_values(Answer& answer) REQUIRES(mutex_);

  Clock& clock_;
  const uint64_t most_bytes_;
  const size_t most_calls_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<Key, AnswerPtr> calls_ GUARDED_BY(mutex_);  // the answers' fields likewise
  std::deque<AnswerPtr> oldest_ GUARDED_BY(mutex_);    // in the order in which they began
  std::deque<AnswerPtr> kept_ GUARDED_BY(mutex_);      // with values, in the order in which they ended
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;              // of all of them
};

}  // namespace longhaul
