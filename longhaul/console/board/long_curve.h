#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace longhaul::console {

struct CurveSample {
  int64_t step = 0;
  double time = 0;  // seconds since 1970
  double value = 0;
  bool operator==(const CurveSample&) const = default;
};

// A scalar over the steps of a run, with up to a million points. Steps ascend: a value of an earlier step replaces what
// was made from that step on, as after a restart. One thread at a time.
class LongCurve {
 public:
  static constexpr size_t kMostSamples = size_t{1} << 20;

  // Returns whether the curve was thinned out to make room.
  bool add(const CurveSample& sample, size_t most = kMostSamples);
  void begin_again(int64_t step);  // what was made from that step on is dropped

  // Leaves about a half: of each six neighbours the least, the largest, and one that is not finite. So no peak is lost.
  void thin_out();

  void thin_to(size_t most);  // until there are so many at most; 12 or more

  size_t bytes() const { return samples_.capacity() * sizeof(CurveSample); }
  const std::vector<CurveSample>& samples() const { return samples_; }
  uint64_t added() const { return added_; }  // as many would be there without thinning and restarts
  bool is_thinned() const { return is_thinned_; }

 private:
  std::vector<CurveSample> samples_;
  uint64_t added_ = 0;
  bool is_thinned_ = false;
};

// What to draw of samples between two steps, and of the neighbours to both sides, to which lines lead: `most` samples
// at most (8 or more), of each stretch the least, the largest and one that is not finite, in their order.
std::vector<CurveSample> to_be_drawn(const std::vector<CurveSample>& samples, int64_t from, int64_t to, size_t most);

// The mean of all values so far, each weighted `weight` times as much as the next one (0 to 1), without the bias to 0
// that it would have at the beginning: TensorBoard's smoothing. Values that are not finite are left out of it.
std::vector<CurveSample> smoothed(const std::vector<CurveSample>& samples, double weight);

}  // namespace longhaul::console
