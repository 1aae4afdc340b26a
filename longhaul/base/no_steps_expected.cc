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
  Expectations& all = expectations();
  MutexLock lock(all.mutex);
  all.ends.push_back(until_);
}

NoStepsExpected::~NoStepsExpected() {
  const bool is_in_time = Clock::real().now() < until_;
  Expectations& all = expectations();
  MutexLock lock(all.mutex);
  all.ends.erase(std::find(all.ends.begin(), all.ends.end(), until_));
  if (is_in_time) ++all.ended;
}

NoStepsExpected::State NoStepsExpected::state() {
  const Seconds now = Clock::real().now();
  Expectations& all = expectations();
  MutexLock lock(all.mutex);
  State state{.ended = all.ended};
  for (const Seconds end : all.ends) {
    if (now < end) state.until = std::max(state.until, end);
  }
  state.now = state.until > Seconds{0};
  return state;
}

}  // namespace longhaul
