#include "longhaul/console/board/long_curve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace longhaul::console {
namespace {

constexpr size_t kKeptOfStretch = 3;

// The least and the largest of a stretch and the first that is not finite, in their order: three at most.
template <typename Keep>
void keep_extremes(std::span<const CurveSample> stretch, Keep&& keep) {
  const CurveSample* least = nullptr;
  const CurveSample* largest = nullptr;
  const CurveSample* odd = nullptr;
  for (const CurveSample& sample : stretch) {
    if (!std::isfinite(sample.value)) {
      if (odd == nullptr) odd = &sample;
      continue;
    }
    if (least == nullptr || sample.value < least->value) least = &sample;
    if (largest == nullptr || sample.value > largest->value) largest = &sample;
  }
  std::array<const CurveSample*, kKeptOfStretch> kept{least, largest, odd};
  std::sort(kept.begin(), kept.end());
  const CurveSample* last = nullptr;
  for (const CurveSample* each : kept) {
    if (each != nullptr && each != last) keep(*each);
    last = each;
  }
}

bool is_before(const CurveSample& sample, int64_t step) {
  return sample.step < step;
}

}  // namespace

bool LongCurve::add(const CurveSample& sample, size_t most) {
  begin_again(sample.step);
  samples_.push_back(sample);
  ++added_;
  if (samples_.size() <= most) return false;
  thin_out();
  return true;
}

void LongCurve::begin_again(int64_t step) {
  while (!samples_.empty() && samples_.back().step >= step) samples_.pop_back();
}

void LongCurve::thin_out() {
  constexpr size_t kStretch = 2 * kKeptOfStretch;
  if (samples_.size() < 2 * kStretch) return;
  size_t kept = 1;  // the first one stays, and so do those at the end
  size_t begin = 1;
  for (; begin + kStretch < samples_.size(); begin += kStretch) {
    std::array<CurveSample, kStretch> stretch;
    std::copy_n(samples_.begin() + static_cast<ptrdiff_t>(begin), kStretch, stretch.begin());
    keep_extremes(stretch, [&](const CurveSample& sample) { samples_[kept++] = sample; });
  }
  for (; begin < samples_.size(); ++begin) samples_[kept++] = samples_[begin];
  samples_.resize(kept);
  samples_.shrink_to_fit();
  is_thinned_ = true;
}

void LongCurve::thin_to(size_t most) {
  while (samples_.size() > most) thin_out();
  if (samples_.capacity() > most) samples_.shrink_to_fit();
}

std::vector<CurveSample> to_be_drawn(const std::vector<CurveSample>& samples, int64_t from, int64_t to, size_t most) {
  if (samples.empty() || from > to) return {};
  auto first = std::lower_bound(samples.begin(), samples.end(), from, is_before);
  auto end = std::upper_bound(first, samples.end(), to,
                              [](int64_t step, const CurveSample& sample) { return step < sample.step; });
  if (first != samples.begin()) --first;
  if (end != samples.end()) ++end;
  const std::span<const CurveSample> wanted(first, end);
  if (wanted.size() <= most) return {wanted.begin(), wanted.end()};
  std::vector<CurveSample> drawn{wanted.front()};
  const std::span<const CurveSample> middle = wanted.subspan(1, wanted.size() - 2);
  const size_t stretches = std::max<size_t>(1, (most - 2) / kKeptOfStretch);
  for (size_t i = 0; i < stretches; ++i) {
    const size_t begin = middle.size() * i / stretches;
    const size_t stop = middle.size() * (i + 1) / stretches;
    keep_extremes(middle.subspan(begin, stop - begin), [&](const CurveSample& sample) { drawn.push_back(sample); });
  }
  drawn.push_back(wanted.back());
  return drawn;
}

std::vector<CurveSample> smoothed(const std::vector<CurveSample>& samples, double weight) {
  std::vector<CurveSample> smooth = samples;
  double mean = 0, weights = 0;
  for (CurveSample& sample : smooth) {
    if (!std::isfinite(sample.value)) continue;
    mean = weight * mean + (1 - weight) * sample.value;
    weights = weight * weights + (1 - weight);
    sample.value = weights > 0 ? mean / weights : sample.value;
  }
  return smooth;
}

}  // namespace longhaul::console
