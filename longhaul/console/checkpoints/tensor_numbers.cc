#include "longhaul/console/checkpoints/tensor_numbers.h"

#include <fmt/format.h>

#include <algorithm>

namespace longhaul::console {
namespace {

// Calls use(element) for each.
template <typename Use>
void for_each_number(const TensorSource& source, const StoredTensor& tensor,
                     const std::function<void(uint64_t bytes)>& progress, Use use) {
  const auto stream = source.stream(tensor);
  for (std::string_view bytes = stream->next(); !bytes.empty(); bytes = stream->next()) {
    with_type_of(tensor.known.value(), [&](auto kind) {
      using T = decltype(kind);
      const T* const elements = reinterpret_cast<const T*>(bytes.data());
      const size_t count = bytes.size() / sizeof(T);
      for (size_t i = 0; i < count; ++i) use(elements[i]);
    });
    if (progress) progress(bytes.size());
  }
}

}  // namespace

bool has_numbers(DType dtype) {
  return is_floating(dtype) || is_integer(dtype) || dtype == kBool;
}

std::string number_text(const Number& number, int digits) {
  if (const double* const value = std::get_if<double>(&number)) return fmt::format("{:.{}g}", *value, digits);
  return std::visit([](auto value) { return fmt::format("{}", value); }, number);
}

Json number_json(const Number& number) {
  return std::visit([](auto value) { return Json(value); }, number);
}

TensorStatistics statistics_of(const TensorSource& source, const StoredTensor& tensor,
                               const std::function<void(uint64_t bytes)>& progress) {
  TensorStatistics all;
  long double sum = 0;  // which has room for the largest doubles
  uint64_t finite = 0;
  for_each_number(source, tensor, progress, [&](auto element) {
    const double value = as_double(element);
    ++all.count;
    if (std::isnan(value)) {
      ++all.nans;
      return;
    }
    all.minimum = std::min(all.minimum, value);
    all.maximum = std::max(all.maximum, value);
    const Number exact = as_number(element);  // always of the same of Number's types
    const bool is_first = all.count - all.nans == 1;
    if (is_first || exact < all.exact_minimum) all.exact_minimum = exact;
    if (is_first || exact > all.exact_maximum) all.exact_maximum = exact;
    if (std::isinf(value)) {
      ++all.infinities;
      return;
    }
    if (value == 0) ++all.zeros;
    ++finite;
    sum += value;
  });
  all.mean = finite > 0 ? static_cast<double>(sum / static_cast<long double>(finite)) : NAN;
  return all;
}

std::vector<uint64_t> histogram_of(const TensorSource& source, const StoredTensor& tensor,
                                   const TensorStatistics& statistics, size_t count) {
  std::vector<uint64_t> counts(count, 0);
  // The range of doubles may be wider than a double: then by halves.
  const double scale = std::isfinite(statistics.maximum - statistics.minimum) ? 1 : 0.5;
  const double low = scale * statistics.minimum, wide = scale * statistics.maximum - low;
  for_each_number(source, tensor, {}, [&](auto element) {
    const double value = as_double(element);
    if (!std::isfinite(value)) return;
    const double share = wide > 0 ? (scale * value - low) / wide : 0;
    const double place = std::clamp(share * static_cast<double>(count), 0.0, static_cast<double>(count - 1));
    ++counts[static_cast<size_t>(place)];
  });
  return counts;
}

}  // namespace longhaul::console
