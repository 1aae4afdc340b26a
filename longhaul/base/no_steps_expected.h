#pragma once

#include <cstdint>
#include <limits>

#include "longhaul/base/mutex.h"

namespace longhaul {

// While it exists, no training of this process is expected to make a step: it evaluates, saves, or waits for something
// that has a bound of its own. What looks for a training that hangs (train/hangs/hang_watch.h) does not count that
// time. Trainer::validate() and saves of hooks create one; a program that evaluates between two steps for minutes
// creates one itself:
//
//   {
//     const NoStepsExpected evaluating;
//     evaluate(session);
//   }
//
// After `at_most`, in real time, it has no effect, so that something that hangs is found in the end. Any thread, any
// number at a time.
class NoStepsExpected {
 public:
  explicit NoStepsExpected(Seconds at_most = Seconds{std::numeric_limits<double>::infinity()});
  ~NoStepsExpected();
  NoStepsExpected(const NoStepsExpected&) = delete;
  NoStepsExpected& operator=(const NoStepsExpected&) = delete;

  struct State {
    bool now = false;    // there is one whose time is not over
    Seconds until{0};    // when the last of those has no effect any more, by Clock::real(); 0: there is none
    uint64_t ended = 0;  // how many there have been, whose time was not over when they ended
  };
  static State state();

 private:
  const Seconds until_;
};

}  // namespace longhaul
