#include "longhaul/console/board/histogram_bins.h"

#include <algorithm>
#include <cmath>

namespace longhaul::console {

std::vector<double> counts_in_bins(const proto::HistogramProto& histogram, double low, double high, size_t bins) {
  std::vector<double> counts(bins);
  if (!(high > low) || !std::isfinite(low) || !std::isfinite(high - low)) return counts;
  const double width = (high - low) / static_cast<double>(bins);
  const auto bin_of = [&](double value) {
    return static_cast<size_t>(std::clamp((value - low) / width, 0.0, static_cast<double>(bins - 1)));
  };
  const int buckets = std::min(histogram.bucket_size(), histogram.bucket_limit_size());
  double before = histogram.min();
  for (int i = 0; i < buckets; ++i) {
    const double left = std::clamp(before, low, high);
    const double right = std::clamp(std::min(histogram.bucket_limit(i), histogram.max()), left, high);
    before = histogram.bucket_limit(i);
    const double count = histogram.bucket(i);
    if (!(count > 0) || !std::isfinite(count) || !std::isfinite(before)) continue;
    const size_t last = bin_of(right);
    for (size_t bin = bin_of(left); bin <= last; ++bin) {
      const double begin = std::max(left, low + width * static_cast<double>(bin));
      const double end = std::min(right, low + width * static_cast<double>(bin + 1));
      counts[bin] += right > left ? count * std::max(0.0, end - begin) / (right - left) : count;
      if (!(right > left)) break;
    }
  }
  return counts;
}

}  // namespace longhaul::console
