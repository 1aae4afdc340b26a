#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/cancellation.h"
#include "longhaul/base/clock.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// What a master has answered to its clients: so a client that has lost an answer asks for it again, and its run is made
// once. A client has one call under way at a time, and numbers its calls upwards from 1. The answer to its last call is
// kept until the next one, or until the client is forgotten. Any thread.
//
//   new --call--> under way --> answered --the client's next call--> forgotten
class RunOnce {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{64} << 20;

  explicit RunOnce(Clock& clock, uint64_t most_bytes = kMostBytes) : clock_(clock), most_bytes_(most_bytes) {}

  using Values = std::vector<Tensor>;
  // Makes the run, or returns what it returned or threw the first time; waits for it if it is under way, within
  // `limits`. Number 0: no repetition is expected, nothing is kept.
  //   - AbortedError "... was received twice": the client has made another call since
  //   - FailedPreconditionError: it was made, but its values were too large to be kept
  Values call(const std::string& client, uint64_t number, const WaitLimits& limits, const std::function<Values()>& run)
      EXCLUDES(mutex_);

  enum class Known { kNever, kUnderWay, kSucceeded, kFailed, kForgotten };
  Known ask(const std::string& client, uint64_t number) const EXCLUDES(mutex_);

  void forget(const std::string& client) EXCLUDES(mutex_);  // it has gone
  size_t clients() const EXCLUDES(mutex_);

 private:
  struct Answer {
    uint64_t number = 0;
    bool is_over = false;
    bool is_dropped = false;
    std::exception_ptr error;
    Values values;
  };

  std::shared_ptr<Answer> begin(const std::string& client, uint64_t number, bool& is_new) EXCLUDES(mutex_);
  Values make(Answer& answer, const std::function<Values()>& run) EXCLUDES(mutex_);
  Values answer_of(const std::string& client, const Answer& answer, const WaitLimits& limits) EXCLUDES(mutex_);

  Clock& clock_;
  const uint64_t most_bytes_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::shared_ptr<Answer>> last_ GUARDED_BY(mutex_);  // of each client; fields likewise
};

}  // namespace longhaul
