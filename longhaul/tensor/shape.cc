#include "longhaul/tensor/shape.h"

namespace longhaul {

Shape Shape::unknown_rank() {
  Shape shape;
  shape.has_rank_ = false;
  return shape;
}

bool Shape::fully_defined() const {
  if (!has_rank_) return false;
  for (int64_t d : dims_) {
    if (d < 0) return false;
  }
  return true;
}

int64_t Shape::num_elements() const {
  if (!fully_defined()) return -1;
  for (int64_t d : dims_) {
    if (d == 0) return 0;
  }
  int64_t product = 1;
  for (int64_t d : dims_) {
    if (__builtin_mul_overflow(product, d, &product)) return -1;
  }
  return product;
}

bool Shape::compatible_with(const Shape& other) const {
  if (!has_rank_ || !other.has_rank_) return true;
  if (dims_.size() != other.dims_.size()) return false;
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (dims_[i] >= 0 && other.dims_[i] >= 0 && dims_[i] != other.dims_[i]) return false;
  }
  return true;
}

std::string Shape::to_string() const {
  if (!has_rank_) return "<unknown>";
  std::string text = "[";
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (i > 0) text += ",";
    text += dims_[i] < 0 ? "?" : std::to_string(dims_[i]);
  }
  return text + "]";
}

}  // namespace longhaul
