#include "longhaul/checkpoint/bundle/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "longhaul/base/error.h"
#include "longhaul/checkpoint/bundle/ordered_code.h"

namespace longhaul {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == text.npos ? text.npos : end - begin));
    if (end == text.npos) return parts;
    begin = end + 1;
  }
}

bool parse_size(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value >= 0;
}

bool parse_extent(std::string_view text, TensorSlice::Extent& extent) {
  if (text == "-") return true;
  const auto parts = split(text, ',');
  return parts.size() == 2 && parse_size(parts[0], extent.start) && parse_size(parts[1], extent.length);
}

[[noreturn]] void throw_malformed(std::string_view text) {
  throw InvalidArgumentError(fmt::format("\"{}\" is not a shape and slice such as \"5 10 -:0,1\"", text));
}

// The common range of one dimension, counted from the start of either slice.
struct CommonRange {
  int64_t from, to, length;
};

bool common_ranges(const TensorSlice& from, const TensorSlice& to, std::vector<CommonRange>& ranges) {
  for (size_t d = 0; d < from.extents.size(); ++d) {
    const auto &a = from.extents[d], &b = to.extents[d];
    const int64_t begin = std::max(a.start, b.start);
    const int64_t end = std::min(a.start + a.length, b.start + b.length);
    if (begin >= end) return false;
    ranges.push_back({begin - a.start, begin - b.start, end - begin});
  }
  return true;
}

std::vector<size_t> strides_of(const TensorSlice& slice) {
  std::vector<size_t> strides(slice.extents.size(), 1);
  for (size_t d = strides.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * static_cast<size_t>(slice.extents[d].length);
  }
  return strides;
}

}  // namespace

TensorSlice TensorSlice::within(const Shape& tensor) const {
  if (static_cast<size_t>(tensor.rank()) != extents.size()) {
    throw InvalidArgumentError(
        fmt::format("slice {} and the shape {} of its tensor differ in rank", to_string(), tensor.to_string()));
  }
  TensorSlice slice = *this;
  for (int d = 0; d < tensor.rank(); ++d) {
    Extent& extent = slice.extents[static_cast<size_t>(d)];
    if (extent.length == kFull && extent.start >= 0) extent.length = tensor.dim(d) - extent.start;
    if (extent.start < 0 || extent.length < 0 || extent.start > tensor.dim(d) ||
        extent.length > tensor.dim(d) - extent.start) {
      throw InvalidArgumentError(fmt::format("slice {} reaches outside the shape {}", to_string(), tensor.to_string()));
    }
  }
  return slice;
}

bool TensorSlice::covers(const Shape& tensor) const {
  return shape_of(within(tensor)) == tensor;
}

std::string TensorSlice::to_string() const {
  std::string text;
  for (const Extent& extent : extents) {
    if (!text.empty()) text += ':';
    text += extent == Extent{} ? "-" : fmt::format("{},{}", extent.start, extent.length);
  }
  return text;
}

Shape shape_of(const TensorSlice& slice) {
  std::vector<int64_t> dims;
  for (const auto& extent : slice.extents) dims.push_back(extent.length);
  return Shape(std::move(dims));
}

int64_t common_elements(const TensorSlice& a, const TensorSlice& b) {
  std::vector<CommonRange> ranges;
  if (!common_ranges(a, b, ranges)) return 0;
  int64_t count = 1;
  for (const CommonRange& range : ranges) count *= range.length;
  return count;
}

std::pair<Shape, TensorSlice> parse_shape_and_slice(std::string_view text) {
  auto words = split(text, ' ');
  const std::string_view last = words.back();
  words.pop_back();
  std::vector<int64_t> dims(words.size());
  for (size_t d = 0; d < words.size(); ++d) {
    if (!parse_size(words[d], dims[d])) throw_malformed(text);
  }
  TensorSlice slice;
  if (!last.empty()) {
    for (const std::string_view part : split(last, ':')) {
      if (!parse_extent(part, slice.extents.emplace_back())) throw_malformed(text);
    }
  }
  const Shape shape(std::move(dims));
  slice.within(shape);
  return {shape, slice};
}

std::string slice_key(std::string_view name, const TensorSlice& slice) {
  std::string key;
  append_ordered_unsigned(key, 0);
  append_ordered_string(key, name);
  append_ordered_unsigned(key, slice.extents.size());
  for (const auto& extent : slice.extents) {
    append_ordered_signed(key, extent.start);
    append_ordered_signed(key, extent.length);
  }
  return key;
}

void for_each_common_run(const TensorSlice& from, const TensorSlice& to, const RunVisitor& visit) {
  std::vector<CommonRange> ranges;
  if (!common_ranges(from, to, ranges)) return;
  const auto from_strides = strides_of(from), to_strides = strides_of(to);
  // A run spans the dimensions behind `inner`, which both slices have whole, and what is common of `inner` itself.
  size_t inner = ranges.size();
  size_t run = 1;
  while (inner > 0) {
    --inner;
    run *= static_cast<size_t>(ranges[inner].length);
    if (ranges[inner].length != from.extents[inner].length || ranges[inner].length != to.extents[inner].length) break;
  }
  std::vector<int64_t> position(inner, 0);
  for (;;) {
    size_t from_index = 0, to_index = 0;
    for (size_t d = 0; d < ranges.size(); ++d) {
      const int64_t step = d < inner ? position[d] : 0;
      from_index += static_cast<size_t>(ranges[d].from + step) * from_strides[d];
      to_index += static_cast<size_t>(ranges[d].to + step) * to_strides[d];
    }
    visit(from_index, to_index, run);
    size_t d = inner;
    while (d > 0 && ++position[d - 1] == ranges[d - 1].length) position[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace longhaul
