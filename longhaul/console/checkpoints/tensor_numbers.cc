#include "longhaul/console/checkpoints/tensor_numbers.h"

#include <algorithm>

namespace longhaul::console {
namespace {

// Calls use(number) for each element.
template <typename Use>
void for_each_number(const TensorSource& source, const StoredTensor& tensor,
                     const std::function<void(uint64_t bytes)>& progress, Use use) {
  const auto stream = source.stream(tensor);
  for (std::string_view bytes = stream->next(); !bytes.empty(); bytes = stream->next()) {
    with_type_of(tensor.known.value(), [&](auto kind) {
      using T = decltype(kind);
      const T* const elements = reinterpret_cast<const T*>(bytes.data());
      const size_t count = bytes.size() / sizeof(T);
      for (size_t i = 0; i < count; ++i) use(as_double(elements[i]));
    });
    if (progress) progress(bytes.size());
  }
}

}  // namespace

bool has_numbers(DType dtype) {
  return is_floating(dtype) || is_integer(dtype) || dtype == kBool;
}

TensorStatistics statistics_of(const TensorSource& source, const StoredTensor& tensor,
                               const std::function<void(uint64_t bytes)>& progress) {
  TensorStatistics all;
  double sum = 0;
  uint64_t finite = 0;
  for_each_number(source, tensor, progress, [&](double value) {
    ++all.count;
    if (std::isnan(value)) {
      ++all.nans;
      return;
    }
    all.minimum = std::min(all.minimum, value);
    all.maximum = std::max(all.maximum, value);
    if (std::isinf(value)) {
      ++all.infinities;
      return;
    }
    if (value == 0) ++all.zeros;
    ++finite;
    sum += value;
  });
  all.mean = finite > 0 ? sum / static_cast<double>(finite) : NAN;
  return all;
}

std::vector<uint64_t> histogram_of(const TensorSource& source, const StoredTensor& tensor,
                                   const TensorStatistics& statistics, size_t count) {
  std::vector<uint64_t> counts(count, 0);
  const double low = statistics.minimum, wide = statistics.maximum - statistics.minimum;
  const double per_range = wide > 0 ? static_cast<double>(count) / wide : 0;
  for_each_number(source, tensor, {}, [&](double value) {
    if (!std::isfinite(value)) return;
    const double place = std::clamp((value - low) * per_range, 0.0, static_cast<double>(count - 1));
    ++counts[static_cast<size_t>(place)];
  });
  return counts;
}

}  // namespace longhaul::console
