#include <fmt/format.h>

#include <algorithm>

#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {
namespace {

using DTypes = std::vector<DType>;
using Shapes = std::vector<Shape>;

void need_one_of(const OperationSpec& spec, const std::string& what, DType dtype, const DTypes& allowed) {
  if (std::find(allowed.begin(), allowed.end(), dtype) != allowed.end()) return;
  refuse(spec, fmt::format("{} cannot be {}", what, dtype_name(dtype)));
}

void need_scalar(const OperationSpec& spec, size_t input, const std::string& what) {
  if (!spec.inputs[input].shape().compatible_with({})) refuse(spec, what + " must be a scalar");
}

void need_vector(const OperationSpec& spec, size_t input, const std::string& what) {
  if (!spec.inputs[input].shape().compatible_with({-1})) refuse(spec, what + " must be a vector");
}

bool flag(const OperationSpec& spec, const std::string& name) {
  const bool* value = find_attr<bool>(spec, name);
  return value != nullptr && *value;
}

void check_csv_format(const OperationSpec& spec) {
  const std::string* delimiter = find_attr<std::string>(spec, "field_delim");
  if (delimiter != nullptr && delimiter->size() != 1) refuse(spec, "field_delim must be one character");
  if (delimiter != nullptr && (*delimiter == "\n" || *delimiter == "\r"))
    refuse(spec, "field_delim must not be a line break");
  find_attr<bool>(spec, "use_quote_delim");
  find_attr<std::string>(spec, "na_value");
}

void check_csv_columns(const OperationSpec& spec, size_t count) {
  const auto* columns = find_attr<std::vector<int64_t>>(spec, "select_cols");
  if (columns == nullptr || columns->empty()) return;
  if (columns->size() != count)
    refuse(spec, fmt::format("there are {} select_cols for {} record_defaults", columns->size(), count));
  for (size_t i = 0; i < columns->size(); ++i) {
    if ((*columns)[i] < (i == 0 ? 0 : (*columns)[i - 1] + 1)) refuse(spec, "select_cols must be strictly increasing");
  }
}

// The records, a default for each column, and with has_keys the records' names.
OpInfo resolve_decode_csv(const OperationSpec& spec) {
  const DTypes& types = need_attr<DTypes>(spec, "OUT_TYPE");
  const bool has_keys = flag(spec, "has_keys");
  if (types.empty()) refuse(spec, "takes at least one column");
  need_inputs(spec, 1 + types.size() + (has_keys ? 1 : 0));
  need_dtype(spec, 0, kString);
  OpInfo info;
  for (size_t i = 0; i < types.size(); ++i) {
    need_one_of(spec, fmt::format("column {}", i + 1), types[i], {kFloat, kDouble, kInt32, kInt64, kString});
    need_dtype(spec, 1 + i, types[i]);
    const Shape& shape = spec.inputs[1 + i].shape();
    if (shape.num_elements() > 1 || (shape.has_rank() && shape.rank() > 1)) {
      refuse(spec, fmt::format("the default of column {} must be one value, or none if the column is required", i + 1));
    }
    info.outputs.push_back({types[i], spec.inputs[0].shape()});
  }
  if (has_keys) {
    need_dtype(spec, 1 + types.size(), kString);
    if (!spec.inputs.back().shape().compatible_with(spec.inputs[0].shape()))
      refuse(spec, "takes one key for each record");
  }
  check_csv_format(spec);
  check_csv_columns(spec, types.size());
  return info;
}

OpInfo resolve_decode_raw(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_dtype(spec, 0, kString);
  const DType dtype = need_attr<DType>(spec, "out_type");
  if (dtype_size(dtype) == 0) refuse(spec, fmt::format("out_type must have a fixed size, not {}", dtype_name(dtype)));
  const Shape& shape = spec.inputs[0].shape();
  if (!shape.has_rank()) return {{{dtype, shape}}};
  std::vector<int64_t> dims = shape.dims();
  dims.push_back(-1);
  return {{{dtype, Shape(std::move(dims))}}};
}

// A dense feature's shape, of a batch of unknown size; all but its first dimension must be known.
std::vector<int64_t> dense_dims(const OperationSpec& spec, const Shape& shape, size_t i) {
  if (!shape.has_rank()) refuse(spec, fmt::format("the shape of dense feature {} must be known", i));
  for (int d = 1; d < shape.rank(); ++d) {
    if (shape.dim(d) < 0) refuse(spec, fmt::format("only the first dimension of dense feature {} can be unknown", i));
  }
  return shape.dims();
}

void check_feature_types(const OperationSpec& spec, const DTypes& sparse, const DTypes& dense, const Shapes& shapes) {
  for (DType dtype : sparse) need_one_of(spec, "a feature", dtype, {kFloat, kInt64, kString});
  for (DType dtype : dense) need_one_of(spec, "a feature", dtype, {kFloat, kInt64, kString});
  if (shapes.size() != dense.size())
    refuse(spec, fmt::format("there are {} dense_shapes for {} dense features", shapes.size(), dense.size()));
}

// `batch`: the size of the batch, or nothing for a single example.
OpInfo feature_results(const OperationSpec& spec, const DTypes& sparse, const DTypes& dense, const Shapes& shapes,
                       const std::vector<int64_t>& batch) {
  check_feature_types(spec, sparse, dense, shapes);
  const auto rank = static_cast<int64_t>(batch.size()) + 1;
  OpInfo info;
  for (size_t i = 0; i < sparse.size(); ++i) info.outputs.push_back({kInt64, {-1, rank}});
  for (DType dtype : sparse) info.outputs.push_back({dtype, {-1}});
  for (size_t i = 0; i < sparse.size(); ++i) info.outputs.push_back({kInt64, {rank}});
  for (size_t i = 0; i < dense.size(); ++i) {
    std::vector<int64_t> dims = dense_dims(spec, shapes[i], i);
    dims.insert(dims.begin(), batch.begin(), batch.end());
    info.outputs.push_back({dense[i], Shape(std::move(dims))});
  }
  return info;
}

void check_defaults(const OperationSpec& spec, size_t first, const DTypes& dense) {
  for (size_t i = 0; i < dense.size(); ++i) need_dtype(spec, first + i, dense[i]);
}

// serialized, names, the sparse keys, the dense keys, the dense defaults
OpInfo resolve_parse_example(const OperationSpec& spec) {
  const auto &sparse = need_attr<DTypes>(spec, "sparse_types"), &dense = need_attr<DTypes>(spec, "Tdense");
  need_inputs(spec, 2 + sparse.size() + 2 * dense.size());
  for (size_t i = 0; i < 2 + sparse.size() + dense.size(); ++i) need_dtype(spec, i, kString);
  need_vector(spec, 0, "serialized");
  need_vector(spec, 1, "names");
  for (size_t i = 2; i < 2 + sparse.size() + dense.size(); ++i) need_scalar(spec, i, "a key");
  check_defaults(spec, 2 + sparse.size() + dense.size(), dense);
  const Shape& serialized = spec.inputs[0].shape();
  const int64_t batch = serialized.has_rank() ? serialized.dim(0) : -1;
  return feature_results(spec, sparse, dense, need_attr<Shapes>(spec, "dense_shapes"), {batch});
}

// serialized, the dense defaults; the keys are attrs
OpInfo resolve_parse_single_example(const OperationSpec& spec) {
  using Keys = std::vector<std::string>;
  const auto &sparse = need_attr<DTypes>(spec, "sparse_types"), &dense = need_attr<DTypes>(spec, "Tdense");
  need_inputs(spec, 1 + dense.size());
  need_dtype(spec, 0, kString);
  need_scalar(spec, 0, "serialized");
  check_defaults(spec, 1, dense);
  if (need_attr<Keys>(spec, "sparse_keys").size() != sparse.size())
    refuse(spec, "takes one key for each sparse feature");
  if (need_attr<Keys>(spec, "dense_keys").size() != dense.size()) refuse(spec, "takes one key for each dense feature");
  return feature_results(spec, sparse, dense, need_attr<Shapes>(spec, "dense_shapes"), {});
}

OpInfo resolve_string_to_number(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_dtype(spec, 0, kString);
  const DType* dtype = find_attr<DType>(spec, "out_type");
  if (dtype != nullptr) need_one_of(spec, "out_type", *dtype, {kFloat, kDouble, kInt32, kInt64});
  return {{{dtype == nullptr ? kFloat : *dtype, spec.inputs[0].shape()}}};
}

void need_sparse(const OperationSpec& spec) {
  need_inputs(spec, 3);
  need_dtype(spec, 0, kInt64);
  need_dtype(spec, 2, kInt64);
  if (!spec.inputs[0].shape().compatible_with({-1, -1})) refuse(spec, "indices must be a matrix");
  need_vector(spec, 1, "values");
  need_vector(spec, 2, "dense_shape");
}

OpInfo resolve_serialize_sparse(const OperationSpec& spec) {
  need_sparse(spec);
  return {{{kString, {3}}}};
}

OpInfo resolve_serialize_many_sparse(const OperationSpec& spec) {
  need_sparse(spec);
  return {{{kString, {-1, 3}}}};
}

// `rank`: of what was serialized; the result has one dimension more.
OpInfo resolve_deserialize_many_sparse(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_dtype(spec, 0, kString);
  if (!spec.inputs[0].shape().compatible_with({-1, 3})) refuse(spec, "takes a matrix with three columns");
  const int64_t* rank = find_attr<int64_t>(spec, "rank");
  const int64_t result = rank == nullptr || *rank < 0 ? -1 : *rank + 1;
  return {{{kInt64, {-1, result}}, {need_attr<DType>(spec, "dtype"), {-1}}, {kInt64, {result}}}};
}

}  // namespace

ResolverTable parsing_ops() {
  return {
      {"DecodeCSV", resolve_decode_csv},
      {"DecodeRaw", resolve_decode_raw},
      {"ParseExample", resolve_parse_example},
      {"ParseSingleExample", resolve_parse_single_example},
      {"StringToNumber", resolve_string_to_number},
      {"SerializeSparse", resolve_serialize_sparse},
      {"SerializeManySparse", resolve_serialize_many_sparse},
      {"DeserializeManySparse", resolve_deserialize_many_sparse},
  };
}

}  // namespace longhaul::builtin
