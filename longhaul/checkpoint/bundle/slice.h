#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "longhaul/tensor/shape.h"

namespace longhaul {

// A box inside a tensor: a start and a length for each dimension. A partitioned variable is stored as such boxes.
struct TensorSlice {
  static constexpr int64_t kFull = -1;  // a length: the whole dimension

  struct Extent {
    int64_t start = 0;
    int64_t length = kFull;
    bool operator==(const Extent&) const = default;
  };
  std::vector<Extent> extents;

  static TensorSlice full(int rank) { return {std::vector<Extent>(static_cast<size_t>(rank))}; }

  // The same box with explicit lengths. InvalidArgumentError: its rank is not the tensor's, or it reaches outside the
  // tensor.
  TensorSlice within(const Shape& tensor) const;
  bool covers(const Shape& tensor) const;  // whether it covers all of `tensor`

  std::string to_string() const;  // "-:0,1": whole dimensions are "-"
  bool operator==(const TensorSlice&) const = default;
};

// Both need slices with explicit lengths.
Shape shape_of(const TensorSlice& slice);
int64_t common_elements(const TensorSlice& a, const TensorSlice& b);

// "5 10 -:0,1": the shape of the whole tensor and the slice, as in save operations. InvalidArgumentError: malformed.
std::pair<Shape, TensorSlice> parse_shape_and_slice(std::string_view text);

// The key under which the slice of the tensor `name` is stored. It sorts before the names of all tensors.
std::string slice_key(std::string_view name, const TensorSlice& slice);

// The intersection of two slices of one tensor, as runs of elements that are contiguous in both: calls visit(index in
// `from`, index in `to`, count) for each. All lengths must be explicit.
using RunVisitor = std::function<void(size_t from, size_t to, size_t count)>;
void for_each_common_run(const TensorSlice& from, const TensorSlice& to, const RunVisitor& visit);

}  // namespace longhaul
