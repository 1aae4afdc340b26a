#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/mutex.h"

namespace longhaul {

struct CurvePoint {
  int64_t step = 0;
  double value = 0;
  bool operator==(const CurvePoint&) const = default;
};

// The course of each scalar of a training run, in bounded memory: of a long one every second point is left out, then
// every second of the rest, and so on. The newest is always there. Any thread may call.
class Curves {
 public:
  static constexpr size_t kMostTags = 100, kMostPoints = 400, kMostTagBytes = 200;

  // Quick: no more than a few hundred nanoseconds. A step below the last one replaces what was made after it, as after
  // a restart. Tags beyond the first kMostTags are not kept.
  void note(std::string_view tag, double value, int64_t step);

  std::map<std::string, std::vector<CurvePoint>> points() const;
  std::map<std::string, CurvePoint> newest() const;
  int64_t refused_tags() const;  // how often a value was left out for its tag

 private:
  struct Curve {
    std::vector<CurvePoint> points;
    int64_t every = 1;  // one of this many points is kept
    int64_t since = 0;  // points since the last one that was kept
    CurvePoint newest;
  };

  mutable Mutex mutex_;
  std::map<std::string, Curve, std::less<>> curves_ GUARDED_BY(mutex_);
  int64_t refused_ GUARDED_BY(mutex_) = 0;
};

}  // namespace longhaul
