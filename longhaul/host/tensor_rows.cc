#include "longhaul/host/tensor_rows.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace longhaul {
namespace {

using Row = std::function<const Tensor&(size_t)>;

size_t bytes_of_element(DType dtype) {
  return dtype == kString ? sizeof(std::string) : dtype_size(dtype);
}

// Elements that follow each other.
void copy_elements(DType dtype, const void* from, void* to, size_t count) {
  if (dtype == kString) {
    std::copy_n(static_cast<const std::string*>(from), count, static_cast<std::string*>(to));
  } else if (count > 0) {
    std::memcpy(to, from, count * dtype_size(dtype));
  }
}

// A box into the corner of a larger one of the same rank.
void copy_box(const Tensor& from, char* to, const std::vector<int64_t>& sizes) {
  const auto& own = from.shape().dims();
  if (from.num_elements() == 0) return;
  if (own == sizes) return copy_elements(from.dtype(), from.data(), to, static_cast<size_t>(from.num_elements()));
  const size_t unit = bytes_of_element(from.dtype());
  const size_t run = static_cast<size_t>(own.back());
  const char* data = static_cast<const char*>(from.data());
  std::vector<int64_t> index(own.size(), 0);
  for (int64_t runs = from.num_elements() / own.back(); runs > 0; --runs) {
    size_t offset = 0;
    for (size_t d = 0; d < sizes.size(); ++d)
      offset = offset * static_cast<size_t>(sizes[d]) + static_cast<size_t>(index[d]);
    copy_elements(from.dtype(), data, to + offset * unit, run);
    data += run * unit;
    for (size_t d = own.size() - 1; d-- > 0;) {
      if (++index[d] < own[d]) break;
      index[d] = 0;
    }
  }
}

// What a row of all of them is.
Shape largest(size_t count, const Row& row, const Shape& declared) {
  if (declared.fully_defined()) return declared;
  std::vector<int64_t> sizes(declared.dims().size(), 0);
  for (size_t i = 0; i < count; ++i) {
    const auto& own = row(i).shape().dims();
    for (size_t d = 0; d < sizes.size(); ++d) sizes[d] = std::max(sizes[d], own[d]);
  }
  for (size_t d = 0; d < sizes.size(); ++d) sizes[d] = std::max(sizes[d], declared.dims()[d]);
  return Shape(std::move(sizes));
}

}  // namespace

std::vector<Tensor> rows_of(const Tensor& tensor) {
  if (tensor.shape().rank() == 0) throw InvalidArgumentError("a scalar has no rows");
  const Shape shape(std::vector<int64_t>(tensor.shape().dims().begin() + 1, tensor.shape().dims().end()));
  const size_t row_bytes =
      static_cast<size_t>(std::max<int64_t>(shape.num_elements(), 0)) * bytes_of_element(tensor.dtype());
  std::vector<Tensor> rows;
  rows.reserve(static_cast<size_t>(tensor.shape().dim(0)));
  const char* data = static_cast<const char*>(tensor.data());
  for (int64_t i = 0; i < tensor.shape().dim(0); ++i, data += row_bytes) {
    rows.push_back(Tensor::wrap(tensor.dtype(), shape, data, tensor.owner()));
  }
  return rows;
}

Tensor stack_rows(size_t count, const Row& row, DType dtype, const Shape& declared) {
  const Shape shape = largest(count, row, declared);
  std::vector<int64_t> dims{static_cast<int64_t>(count)};
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  Tensor stacked(dtype, Shape(std::move(dims)));
  if (!declared.fully_defined() && stacked.size_bytes() > 0)
    std::memset(stacked.mutable_data(), 0, stacked.size_bytes());
  const size_t row_bytes = static_cast<size_t>(shape.num_elements()) * bytes_of_element(dtype);
  char* to = static_cast<char*>(stacked.mutable_data());
  for (size_t i = 0; i < count; ++i, to += row_bytes) copy_box(row(i), to, shape.dims());
  return stacked;
}

}  // namespace longhaul
