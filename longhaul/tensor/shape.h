#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace longhaul {

// The sizes of a tensor's dimensions. While a graph is built, a size may be unknown (-1), and so may the number of
// dimensions.
class Shape {
 public:
  Shape() = default;  // a scalar
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}
  static Shape unknown_rank();

  bool has_rank() const { return has_rank_; }
  int rank() const { return static_cast<int>(dims_.size()); }  // call it only if has_rank()
  const std::vector<int64_t>& dims() const { return dims_; }
  int64_t dim(int i) const { return dims_[static_cast<size_t>(i)]; }
  bool fully_defined() const;

  // The product of the sizes; -1 if one is unknown or the product does not fit.
  int64_t num_elements() const;

  // Whether one tensor could have both shapes: the sizes are equal where both are known.
  bool compatible_with(const Shape& other) const;

  std::string to_string() const;  // "[2,?]", "[]", "<unknown>"
  bool operator==(const Shape&) const = default;

 private:
  std::vector<int64_t> dims_;
  bool has_rank_ = true;
};

}  // namespace longhaul
