#include "longhaul/resume_check/compared_checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <iterator>

#include "longhaul/checkpoint/bundle/bundle_entries.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {
namespace {

double as_number(Half value) {
  return static_cast<float>(value);
}
double as_number(BFloat16 value) {
  return static_cast<float>(value);
}
template <typename T>
double as_number(T value) {
  return static_cast<double>(value);
}

std::string index_text(int64_t flat, const Shape& shape) {
  std::vector<int64_t> at(static_cast<size_t>(shape.rank()));
  for (size_t axis = at.size(); axis-- > 0;) {
    at[axis] = flat % shape.dim(static_cast<int>(axis));
    flat /= shape.dim(static_cast<int>(axis));
  }
  return fmt::format("[{}]", fmt::join(at, ","));
}

// The elements that differ in bits, and the pair that is farthest apart; a NaN beside a number is infinitely far.
struct Differing {
  int64_t count = 0;
  double largest = -1;
  int64_t at = 0;
};

template <typename T>
Differing find_differing(const Tensor& a, const Tensor& b) {
  const auto left = a.flat<T>(), right = b.flat<T>();
  Differing found;
  for (size_t i = 0; i < left.size(); ++i) {
    if (std::memcmp(&left[i], &right[i], sizeof(T)) == 0) continue;
    ++found.count;
    const double apart = std::abs(as_number(left[i]) - as_number(right[i]));
    const double distance = std::isnan(apart) ? INFINITY : apart;
    if (distance > found.largest) {
      found.largest = distance;
      found.at = static_cast<int64_t>(i);
    }
  }
  return found;
}

template <typename T>
std::string numbers_text(const Tensor& a, const Tensor& b) {
  const Differing found = find_differing<T>(a, b);
  const auto i = static_cast<size_t>(found.at);
  return fmt::format("{} of {} elements differ, at most by {:.6g}: {} is {:.9g} and {:.9g}", found.count,
                     a.num_elements(), found.largest, index_text(found.at, a.shape()), as_number(a.flat<T>()[i]),
                     as_number(b.flat<T>()[i]));
}

std::string values_text(const Tensor& a, const Tensor& b) {
  switch (a.dtype()) {
    case kFloat: return numbers_text<float>(a, b);
    case kDouble: return numbers_text<double>(a, b);
    case kHalf: return numbers_text<Half>(a, b);
    case kBFloat16: return numbers_text<BFloat16>(a, b);
    case kInt8: return numbers_text<int8_t>(a, b);
    case kInt16: return numbers_text<int16_t>(a, b);
    case kInt32: return numbers_text<int32_t>(a, b);
    case kInt64: return numbers_text<int64_t>(a, b);
    case kUInt8: return numbers_text<uint8_t>(a, b);
    case kUInt16: return numbers_text<uint16_t>(a, b);
    case kUInt32: return numbers_text<uint32_t>(a, b);
    case kUInt64: return numbers_text<uint64_t>(a, b);
    case kBool: return numbers_text<bool>(a, b);
    default: return fmt::format("it is {} and {}", a.to_string(), b.to_string());
  }
}

// Empty: there is no difference.
std::string difference_in(const BundleReader& a, const BundleReader& b, const std::string& name) {
  if (!a.has(name)) return "only in " + b.prefix();
  if (!b.has(name)) return "only in " + a.prefix();
  const Tensor left = a.read(name), right = b.read(name);
  if (identical(left, right)) return "";
  if (left.dtype() == right.dtype() && left.shape() == right.shape()) return values_text(left, right);
  return fmt::format("it is {}{} and {}{}", dtype_name(left.dtype()), left.shape().to_string(),
                     dtype_name(right.dtype()), right.shape().to_string());
}

std::vector<std::string> all_names(const BundleReader& a, const BundleReader& b) {
  const std::vector<std::string> of_a = a.keys(), of_b = b.keys();
  std::vector<std::string> all;
  std::set_union(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), std::back_inserter(all));
  return all;
}

}  // namespace

bool may_differ(const std::string& name) {
  return name.starts_with("longhaul/conditions/") || name.starts_with("longhaul/optimizer/");
}

CheckpointComparison compare_checkpoints(FileSystem& files, const std::string& a, const std::string& b) {
  const BundleReader reader_a(files, a), reader_b(files, b);
  CheckpointComparison comparison{.names = all_names(reader_a, reader_b), .different = {}, .left_out = {}};
  for (const std::string& name : comparison.names) {
    std::string how = difference_in(reader_a, reader_b, name);
    if (how.empty()) continue;
    if (may_differ(name)) {
      comparison.left_out.push_back(name);
    } else {
      comparison.different.push_back({name, std::move(how)});
    }
  }
  return comparison;
}

}  // namespace longhaul
