#include "longhaul/ops/input/parsing_ops.h"

#include "longhaul/ops/state_ops.h"

namespace longhaul::ops {
namespace {

std::string inside(std::string_view name, const std::string& what) {
  return std::string(name) + "/" + what;
}

// The features sorted as the operations want them.
struct FeatureLists {
  std::vector<std::string> sparse_keys, dense_keys;
  std::vector<DType> sparse_types, dense_types;
  std::vector<Shape> dense_shapes;
  std::vector<Tensor> dense_defaults;  // empty: none

  void add(const std::string& key, const VarLenFeature& feature) {
    sparse_keys.push_back(key);
    sparse_types.push_back(feature.dtype);
  }
  void add(const std::string& key, const FixedLenFeature& feature) {
    add_dense(key, feature.dtype, feature.shape, feature.default_value);
  }
  void add(const std::string& key, const FixedLenSequenceFeature& feature) {
    std::vector<int64_t> dims = feature.shape.dims();
    dims.insert(dims.begin(), -1);
    add_dense(key, feature.dtype, Shape(std::move(dims)), feature.default_value);
  }
  void add_dense(const std::string& key, DType dtype, Shape shape, const std::optional<Tensor>& default_value) {
    dense_keys.push_back(key);
    dense_types.push_back(dtype);
    dense_shapes.push_back(std::move(shape));
    dense_defaults.push_back(default_value ? *default_value : Tensor(dtype, {0}));
  }
};

FeatureLists lists_of(const Features& features) {
  FeatureLists lists;
  for (const auto& [key, feature] : features) {
    std::visit([&lists, &key = key](const auto& one) { lists.add(key, one); }, feature);
  }
  return lists;
}

std::vector<Output> constants(const Scope& scope, const std::string& name, const std::vector<Tensor>& values) {
  std::vector<Output> outputs;
  for (const Tensor& value : values) outputs.push_back(constant(scope, value, name));
  return outputs;
}

std::vector<Output> constants(const Scope& scope, const std::string& name, const std::vector<std::string>& texts) {
  std::vector<Output> outputs;
  for (const std::string& text : texts) outputs.push_back(constant(scope, Tensor::scalar(text), name));
  return outputs;
}

void append(std::vector<Output>& to, const std::vector<Output>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

ParsedFeatures results_of(const Operation& op, const FeatureLists& lists) {
  const int sparse = static_cast<int>(lists.sparse_keys.size());
  ParsedFeatures parsed;
  for (int i = 0; i < sparse; ++i) {
    parsed.sparse[lists.sparse_keys[static_cast<size_t>(i)]] = {op.output(i), op.output(sparse + i),
                                                                op.output(2 * sparse + i)};
  }
  for (size_t i = 0; i < lists.dense_keys.size(); ++i) {
    parsed.dense[lists.dense_keys[i]] = op.output(3 * sparse + static_cast<int>(i));
  }
  return parsed;
}

}  // namespace

Tensor required_column(DType dtype) {
  return Tensor(dtype, {0});
}

std::vector<Output> decode_csv(const Scope& scope, const Output& records, const std::vector<Tensor>& record_defaults,
                               const CsvOptions& options, std::string_view name) {
  std::vector<Output> inputs{records};
  append(inputs, constants(scope, inside(name, "record_defaults"), record_defaults));
  std::vector<DType> types;
  for (const Tensor& column : record_defaults) types.push_back(column.dtype());
  Attrs attrs{{"OUT_TYPE", types},
              {"field_delim", std::string(1, options.field_delim)},
              {"use_quote_delim", options.use_quote_delim},
              {"na_value", options.na_value}};
  if (!options.select_cols.empty()) attrs["select_cols"] = options.select_cols;
  if (options.keys) {
    inputs.push_back(*options.keys);
    attrs["has_keys"] = true;
  }
  const Operation op = scope.add("DecodeCSV", name, std::move(inputs), std::move(attrs));
  std::vector<Output> columns;
  for (int i = 0; i < op.num_outputs(); ++i) columns.push_back(op.output(i));
  return columns;
}

Output decode_raw(const Scope& scope, const Output& bytes, DType dtype, bool little_endian, std::string_view name) {
  return scope.add("DecodeRaw", name, {bytes}, {{"out_type", dtype}, {"little_endian", little_endian}}).output();
}

ParsedFeatures parse_example(const Scope& scope, const Output& serialized, const Features& features,
                             const std::optional<Output>& names, std::string_view name) {
  if (serialized.shape().has_rank() && serialized.shape().rank() == 0) {
    return parse_single_example(scope, serialized, features, name);
  }
  const FeatureLists lists = lists_of(features);
  std::vector<Output> inputs{serialized, names ? *names : constant(scope, Tensor(kString, {0}), inside(name, "names"))};
  append(inputs, constants(scope, inside(name, "sparse_keys"), lists.sparse_keys));
  append(inputs, constants(scope, inside(name, "dense_keys"), lists.dense_keys));
  append(inputs, constants(scope, inside(name, "dense_defaults"), lists.dense_defaults));
  const Operation op = scope.add("ParseExample", name, std::move(inputs),
                                 {{"Nsparse", static_cast<int64_t>(lists.sparse_keys.size())},
                                  {"Ndense", static_cast<int64_t>(lists.dense_keys.size())},
                                  {"sparse_types", lists.sparse_types},
                                  {"Tdense", lists.dense_types},
                                  {"dense_shapes", lists.dense_shapes}});
  return results_of(op, lists);
}

ParsedFeatures parse_single_example(const Scope& scope, const Output& serialized, const Features& features,
                                    std::string_view name) {
  const FeatureLists lists = lists_of(features);
  std::vector<Output> inputs{serialized};
  append(inputs, constants(scope, inside(name, "dense_defaults"), lists.dense_defaults));
  const Operation op = scope.add("ParseSingleExample", name, std::move(inputs),
                                 {{"num_sparse", static_cast<int64_t>(lists.sparse_keys.size())},
                                  {"sparse_keys", lists.sparse_keys},
                                  {"dense_keys", lists.dense_keys},
                                  {"sparse_types", lists.sparse_types},
                                  {"Tdense", lists.dense_types},
                                  {"dense_shapes", lists.dense_shapes}});
  return results_of(op, lists);
}

Output string_to_number(const Scope& scope, const Output& texts, DType dtype, std::string_view name) {
  return scope.add("StringToNumber", name, {texts}, {{"out_type", dtype}}).output();
}

Output serialize_sparse(const Scope& scope, const SparseOutput& sparse, std::string_view name) {
  return scope
      .add("SerializeSparse", name, {sparse.indices, sparse.values, sparse.dense_shape}, {{"T", sparse.values.dtype()}})
      .output();
}

Output serialize_many_sparse(const Scope& scope, const SparseOutput& sparse, std::string_view name) {
  return scope
      .add("SerializeManySparse", name, {sparse.indices, sparse.values, sparse.dense_shape},
           {{"T", sparse.values.dtype()}})
      .output();
}

SparseOutput deserialize_many_sparse(const Scope& scope, const Output& serialized, DType dtype, int rank,
                                     std::string_view name) {
  Attrs attrs{{"dtype", dtype}};
  if (rank >= 0) attrs["rank"] = static_cast<int64_t>(rank);
  const Operation op = scope.add("DeserializeManySparse", name, {serialized}, std::move(attrs));
  return {op.output(0), op.output(1), op.output(2)};
}

}  // namespace longhaul::ops
