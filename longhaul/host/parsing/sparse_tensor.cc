#include "longhaul/host/parsing/sparse_tensor.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/host/queues/rows.h"
#include "longhaul/proto/parsed_size.h"
#include "longhaul/proto/serialize.h"

namespace longhaul {
namespace {

constexpr int64_t kMostRows = int64_t{1} << 24;  // of what is taken apart: each row takes memory, also an empty one

// In a serialized sparse tensor each element has bytes of its own; elsewhere one value may stand for any number.
Tensor parse_tensor(const std::string& bytes) {
  proto::TensorProto message;
  if (!proto::parse_within_limits(bytes, &message)) throw InvalidArgumentError("a string is not a serialized tensor");
  const Shape shape = from_proto(message.tensor_shape());
  if (shape.num_elements() > static_cast<int64_t>(bytes.size())) {
    throw InvalidArgumentError(
        fmt::format("a serialized tensor of {} bytes claims the shape {}", bytes.size(), shape.to_string()));
  }
  return from_proto(message);
}

void write_row(const SparseTensor& sparse, std::string* row) {
  row[0] = proto::serialize(to_proto(sparse.indices));
  row[1] = proto::serialize(to_proto(sparse.values));
  row[2] = proto::serialize(to_proto(sparse.dense_shape));
}

// The values `begin` to `end`, which lie in one row, without the first of their indices.
SparseTensor row_of(const SparseTensor& sparse, int64_t begin, int64_t end) {
  const int64_t rank = sparse.dense_shape.num_elements(), count = end - begin;
  SparseTensor row{Tensor(kInt64, {count, rank - 1}), Tensor(sparse.values.dtype(), {count}),
                   Tensor(kInt64, {rank - 1})};
  for (int64_t i = 0; i < count; ++i) {
    copy_elements(sparse.indices, (begin + i) * rank + 1, row.indices, i * (rank - 1), rank - 1);
  }
  copy_elements(sparse.values, begin, row.values, 0, count);
  copy_elements(sparse.dense_shape, 1, row.dense_shape, 0, rank - 1);
  return row;
}

SparseTensor joined(const std::vector<SparseTensor>& parts, DType dtype) {
  const int64_t rank = parts.empty() ? 0 : parts[0].dense_shape.num_elements();
  int64_t count = 0;
  for (const SparseTensor& part : parts) count += part.values.num_elements();
  SparseTensor all{Tensor(kInt64, {count, rank + 1}), Tensor(dtype, {count}), Tensor(kInt64, {rank + 1})};
  const auto indices = all.indices.mutable_flat<int64_t>(), shape = all.dense_shape.mutable_flat<int64_t>();
  std::fill(shape.begin(), shape.end(), 0);
  shape[0] = static_cast<int64_t>(parts.size());
  int64_t at = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    const auto dims = parts[p].dense_shape.flat<int64_t>();
    for (size_t d = 0; d < dims.size(); ++d) shape[d + 1] = std::max(shape[d + 1], dims[d]);
    for (int64_t i = 0; i < parts[p].values.num_elements(); ++i, ++at) {
      indices[static_cast<size_t>(at * (rank + 1))] = static_cast<int64_t>(p);
      copy_elements(parts[p].indices, i * rank, all.indices, at * (rank + 1) + 1, rank);
      copy_elements(parts[p].values, i, all.values, at, 1);
    }
  }
  return all;
}

}  // namespace

void check_sparse(const SparseTensor& sparse) {
  const Shape &indices = sparse.indices.shape(), &values = sparse.values.shape(), &shape = sparse.dense_shape.shape();
  const bool fits = sparse.indices.dtype() == kInt64 && sparse.dense_shape.dtype() == kInt64 && indices.rank() == 2 &&
                    values.rank() == 1 && shape.rank() == 1 && indices.dim(0) == values.dim(0) &&
                    indices.dim(1) == shape.dim(0);
  if (!fits) {
    throw InvalidArgumentError(
        fmt::format("not a sparse tensor: the shapes of indices, values and dense_shape are {}, {} and {}",
                    indices.to_string(), values.to_string(), shape.to_string()));
  }
  const auto index = sparse.indices.flat<int64_t>(), dims = sparse.dense_shape.flat<int64_t>();
  for (size_t i = 0; i < index.size(); ++i) {
    const int64_t dim = dims[i % dims.size()];
    if (index[i] < 0 || index[i] >= dim) {
      throw InvalidArgumentError(
          fmt::format("sparse value {} has index {} in a dimension of size {}", i / dims.size(), index[i], dim));
    }
  }
}

Tensor serialize_sparse(const SparseTensor& sparse) {
  check_sparse(sparse);
  Tensor result(kString, {3});
  write_row(sparse, result.mutable_flat<std::string>().data());
  return result;
}

Tensor serialize_many_sparse(const SparseTensor& sparse) {
  check_sparse(sparse);
  const int64_t rank = sparse.dense_shape.num_elements(), count = sparse.values.num_elements();
  if (rank < 1) throw InvalidArgumentError("a sparse scalar cannot be split into rows");
  const int64_t rows = sparse.dense_shape.flat<int64_t>()[0];
  if (rows < 0 || rows > kMostRows)
    throw InvalidArgumentError(fmt::format("a sparse tensor cannot be split into {} rows", rows));
  const auto indices = sparse.indices.flat<int64_t>();
  const auto row_at = [&](int64_t i) { return indices[static_cast<size_t>(i * rank)]; };
  Tensor result(kString, {rows, 3});
  int64_t begin = 0;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t end = begin;
    while (end < count && row_at(end) == row) ++end;
    write_row(row_of(sparse, begin, end), result.mutable_flat<std::string>().data() + 3 * row);
    begin = end;
  }
  if (begin != count) throw InvalidArgumentError("the values of a sparse tensor must be sorted by their first index");
  return result;
}

SparseTensor deserialize_many_sparse(const Tensor& serialized, DType dtype) {
  const auto strings = serialized.flat<std::string>();
  if (serialized.shape().rank() != 2 || serialized.shape().dim(1) != 3) {
    throw InvalidArgumentError("serialized sparse tensors must have the shape [N,3], not " +
                               serialized.shape().to_string());
  }
  std::vector<SparseTensor> parts;
  for (size_t i = 0; i + 2 < strings.size(); i += 3) {
    SparseTensor part{parse_tensor(strings[i]), parse_tensor(strings[i + 1]), parse_tensor(strings[i + 2])};
    check_sparse(part);
    if (part.values.dtype() != dtype) {
      throw InvalidArgumentError(fmt::format("serialized sparse tensor {} is {}, want {}", i / 3,
                                             dtype_name(part.values.dtype()), dtype_name(dtype)));
    }
    if (!parts.empty() && part.dense_shape.shape() != parts[0].dense_shape.shape()) {
      throw InvalidArgumentError(
          fmt::format("serialized sparse tensor {} does not have the same rank as the first", i / 3));
    }
    parts.push_back(std::move(part));
  }
  return joined(parts, dtype);
}

}  // namespace longhaul
