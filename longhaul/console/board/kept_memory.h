#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "longhaul/console/board/board_limits.h"
#include "longhaul/console/board/long_curve.h"

namespace longhaul::console {

// What all runs of a board keep in memory: curves, and the places of images, histograms and texts. Once it has reached
// its bound, the longest of them become shorter, of whichever run; once all are short, no further one is begun. Any
// thread may call; one shortens.
class KeptMemory {
 public:
  explicit KeptMemory(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  uint64_t most_bytes() const { return most_bytes_; }
  void add(uint64_t bytes) { bytes_ += bytes; }
  void remove(uint64_t bytes) { bytes_ -= bytes; }

  bool is_full() const { return bytes_ > most_bytes_; }
  // How many points a curve may have now, and how many places a tag's images.
  size_t most_points() const { return most_points_; }
  bool is_short() const { return most_points_ < LongCurve::kMostSamples; }

  bool can_shorten() const { return most_points_ > kFewestPoints; }
  void shorten() { most_points_ = std::max(most_points_ / 2, kFewestPoints); }

 private:
  const uint64_t most_bytes_;
  std::atomic<uint64_t> bytes_{0};
  std::atomic<size_t> most_points_{LongCurve::kMostSamples};
};

}  // namespace longhaul::console
