#include "longhaul/base/no_steps_expected.h"

#include <algorithm>
#include <vector>

#include "longhaul/base/clock.h"

namespace longhaul {
namespace {

struct Expectations {
  Mutex mutex;
  std::vector<Seconds> ends GUARDED_BY(mutex);
  uint64_t ended GUARDED_BY(mutex) = 0;
};

Expectations& expectations() {
  static auto& all = *new Expectations;  // threads that were left behind use it while the process ends
  return all;
}

}  // namespace

// NaN is no time.
NoStepsExpected::NoStepsExpected(Seconds at_most)
    : until_(Clock::real().now() + (at_most > Seconds{0} ? at_most : Seconds{0})) {
  MutexLock lock(expectations().mutex);
  expectations().ends.push_back(until_);
}

NoStepsExpected::~NoStepsExpected() {
  const bool is_in_time = Clock::real().now() < until_;
  MutexLock lock(expectations().mutex);
  std::vector<Seconds>& ends = expectations().ends;
  ends.erase(std::find(ends.begin(), ends.end(), until_));
  if (is_in_time) ++expectations().ended;
}

NoStepsExpected::State NoStepsExpected::state() {
  const Seconds now = Clock::real().now();
  MutexLock lock(expectations().mutex);
  const std::vector<Seconds>& ends = expectations().ends;
  return {std::any_of(ends.begin(), ends.end(), [now](Seconds end) { return now < end; }), expectations().ended};
}

}  // namespace longhaul
