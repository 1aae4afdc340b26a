#include "longhaul/host/queues/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
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

template <typename Unit>
void copy_units(const Tensor& from, Tensor& to, size_t first, size_t step) {
  const Unit* source = static_cast<const Unit*>(from.data());
  Unit* target = static_cast<Unit*>(to.mutable_data()) + first;
  for (int64_t i = 0; i < from.num_elements(); ++i, target += step) *target = source[i];
}

// Takes `from` apart into runs of that many elements, each `step` runs behind the one before; the first is number
// `first` of `to`.
void copy_runs(const Tensor& from, int64_t run, Tensor& to, size_t first, size_t step) {
  if (run == 1 && from.dtype() != kString) {
    switch (element_bytes(from.dtype())) {
      case 1: return copy_units<uint8_t>(from, to, first, step);
      case 2: return copy_units<uint16_t>(from, to, first, step);
      case 4: return copy_units<uint32_t>(from, to, first, step);
      case 8: return copy_units<uint64_t>(from, to, first, step);
      default: break;
    }
  }
  int64_t target = static_cast<int64_t>(first) * run;
  for (int64_t at = 0; at < from.num_elements(); at += run, target += static_cast<int64_t>(step) * run) {
    copy_elements(from, at, to, target, run);
  }
}

}  // namespace

int64_t row_elements(const Tensor& tensor) {
  if (tensor.shape().rank() == 0) throw InvalidArgumentError("a scalar has no rows");
  const std::vector<int64_t>& dims = tensor.shape().dims();
  return Shape(std::vector<int64_t>(dims.begin() + 1, dims.end())).num_elements();
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

Tensor pack(std::span<const Tensor> parts, int64_t axis) {
  if (parts.empty()) throw InvalidArgumentError("there are no tensors to pack");
  const Tensor& first = parts[0];
  for (const Tensor& part : parts) {
    if (part.dtype() != first.dtype() || part.shape() != first.shape()) {
      throw InvalidArgumentError(fmt::format("tensors of different shapes cannot be packed: {}{} and {}{}",
                                             dtype_name(first.dtype()), first.shape().to_string(),
                                             dtype_name(part.dtype()), part.shape().to_string()));
    }
  }
  const int64_t rank = first.shape().rank(), at = axis < 0 ? axis + rank + 1 : axis;
  if (at < 0 || at > rank) throw InvalidArgumentError(fmt::format("there is no axis {} to pack along", axis));
  std::vector<int64_t> dims = first.shape().dims();
  const int64_t run = std::accumulate(dims.begin() + at, dims.end(), int64_t{1}, std::multiplies<>());
  dims.insert(dims.begin() + at, static_cast<int64_t>(parts.size()));
  Tensor result(first.dtype(), Shape(std::move(dims)));
  for (size_t i = 0; i < parts.size(); ++i) copy_runs(parts[i], run, result, i, parts.size());
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
