#include "longhaul/host/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace longhaul {
namespace {

// Below `bound`, each as likely: what is left over at the top of the range is drawn again.
uint64_t draw_below(uint64_t bound, std::mt19937_64& random) {
  const uint64_t left_over = -bound % bound;
  while (true) {
    const uint64_t drawn = random();
    if (drawn >= left_over) return drawn % bound;
  }
}

Shape with_rows(const Shape& shape, int64_t count) {
  std::vector<int64_t> dims = shape.dims();
  dims[0] = count;
  return Shape(std::move(dims));
}

}  // namespace

int64_t row_elements(const Tensor& tensor) {
  if (tensor.shape().rank() == 0) throw InvalidArgumentError("a scalar has no rows");
  const std::vector<int64_t>& dims = tensor.shape().dims();
  return Shape(std::vector<int64_t>(dims.begin() + 1, dims.end())).num_elements();
}

void copy_elements(const Tensor& from, int64_t from_index, Tensor& to, int64_t to_index, int64_t count) {
  if (from.dtype() == kString) {
    const auto* source = static_cast<const std::string*>(from.data()) + from_index;
    std::copy(source, source + count, static_cast<std::string*>(to.mutable_data()) + to_index);
    return;
  }
  if (count == 0) return;
  const auto size = static_cast<int64_t>(dtype_size(from.dtype()));
  std::memcpy(static_cast<char*>(to.mutable_data()) + to_index * size,
              static_cast<const char*>(from.data()) + from_index * size, static_cast<size_t>(count * size));
}

Tensor gather_rows(const Tensor& tensor, std::span<const int64_t> rows) {
  const int64_t elements = row_elements(tensor), there_are = tensor.shape().dim(0);
  Tensor result(tensor.dtype(), with_rows(tensor.shape(), static_cast<int64_t>(rows.size())));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] >= there_are) {
      throw InvalidArgumentError(fmt::format("indices[{}] = {} is not in [0, {})", i, rows[i], there_are));
    }
    copy_elements(tensor, rows[i] * elements, result, static_cast<int64_t>(i) * elements, elements);
  }
  return result;
}

Tensor pack_rows(std::span<const Tensor> rows) {
  if (rows.empty()) throw InvalidArgumentError("there are no tensors to pack");
  const Tensor& first = rows[0];
  std::vector<int64_t> dims = first.shape().dims();
  dims.insert(dims.begin(), static_cast<int64_t>(rows.size()));
  Tensor result(first.dtype(), Shape(std::move(dims)));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].dtype() != first.dtype() || rows[i].shape() != first.shape()) {
      throw InvalidArgumentError(fmt::format("tensors of different shapes cannot be packed: {}{} and {}{}",
                                             dtype_name(first.dtype()), first.shape().to_string(),
                                             dtype_name(rows[i].dtype()), rows[i].shape().to_string()));
    }
    copy_elements(rows[i], 0, result, static_cast<int64_t>(i) * first.num_elements(), first.num_elements());
  }
  return result;
}

std::vector<int64_t> random_order(int64_t count, std::mt19937_64& random) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draw_below(i, random)]);
  return order;
}

std::vector<int64_t> to_int64s(const Tensor& tensor) {
  if (tensor.dtype() == kInt32) return {tensor.flat<int32_t>().begin(), tensor.flat<int32_t>().end()};
  return {tensor.flat<int64_t>().begin(), tensor.flat<int64_t>().end()};
}

}  // namespace longhaul
