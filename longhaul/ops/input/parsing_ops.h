#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "longhaul/graph/scope.h"

namespace longhaul {

// A sparse tensor of rank r with n elements: int64 indices [n, r] in row-major order, values [n], dense_shape [r].
struct SparseOutput {
  Output indices, values, dense_shape;
};

struct CsvOptions {
  char field_delim = ',';
  bool use_quote_delim = true;  // fields may stand in double quotes, as in RFC 4180
  std::string na_value{};       // means a missing value, as an empty field does
  // The columns to return, counted from 0, in increasing order; empty: all.
  std::vector<int64_t> select_cols{};
  // The records' names in messages: a string for each record, such as a text line reader's keys ("file:line").
  std::optional<Output> keys{};
};

// A feature that each example must have with exactly the shape's number of values. If missing: the default, if there is
// one (of that shape, or one value for all elements).
struct FixedLenFeature {
  DType dtype = kFloat;  // float, int64 or string, as for all features
  Shape shape{};
  std::optional<Tensor> default_value{};
};
// A feature with any number of values in each example, including none: it becomes a sparse tensor.
struct VarLenFeature {
  DType dtype = kFloat;
};
// A feature with any number of elements of the shape: dense, padded at the end with the default, one value (0, or "").
struct FixedLenSequenceFeature {
  DType dtype = kFloat;
  Shape shape{};
  std::optional<Tensor> default_value{};
};
using Features = std::map<std::string, std::variant<FixedLenFeature, VarLenFeature, FixedLenSequenceFeature>>;

// The parsed features, by key.
struct ParsedFeatures {
  std::map<std::string, Output> dense;
  std::map<std::string, SparseOutput> sparse;
};

namespace ops {

// For record_defaults: a column that must not be empty.
Tensor required_column(DType dtype);

// The fields of records, a tensor of the records' shape for each column; float, double, int32, int64 or string, as its
// default is. InvalidArgumentError with the record's key, or its number, and the column (from 1): a malformed record, a
// wrong number of fields, a field that is not such a number, an empty required field.
std::vector<Output> decode_csv(const Scope& scope, const Output& records, const std::vector<Tensor>& record_defaults,
                               const CsvOptions& options = {}, std::string_view name = "DecodeCSV");

// The strings' bytes as numbers, in one more dimension. InvalidArgumentError: their lengths differ, or are not
// multiples of the dtype's size.
Output decode_raw(const Scope& scope, const Output& bytes, DType dtype, bool little_endian = true,
                  std::string_view name = "DecodeRaw");

// Serialized tf.Example messages: a vector of them, or a scalar (a single example's results have no batch dimension).
// `names`: a string for each example, for messages. InvalidArgumentError with the example and the key: not such a
// message; a feature that is missing, or of another kind or number of values.
ParsedFeatures parse_example(const Scope& scope, const Output& serialized, const Features& features,
                             const std::optional<Output>& names = {}, std::string_view name = "ParseExample");
ParsedFeatures parse_single_example(const Scope& scope, const Output& serialized, const Features& features,
                                    std::string_view name = "ParseSingleExample");

// Decimal texts as float, double, int32 or int64. InvalidArgumentError: one is not a number, or too large.
Output string_to_number(const Scope& scope, const Output& texts, DType dtype = kFloat,
                        std::string_view name = "StringToNumber");

// Sparse tensors as strings, to go through queues. One becomes a vector of 3; serialize_many splits the first
// dimension, and makes a row of 3 for each part. deserialize_many joins such rows, [N, 3], along a new first dimension.
Output serialize_sparse(const Scope& scope, const SparseOutput& sparse, std::string_view name = "SerializeSparse");
Output serialize_many_sparse(const Scope& scope, const SparseOutput& sparse,
                             std::string_view name = "SerializeManySparse");
// `rank`: of the serialized tensors; -1: unknown.
SparseOutput deserialize_many_sparse(const Scope& scope, const Output& serialized, DType dtype, int rank = -1,
                                     std::string_view name = "DeserializeManySparse");

}  // namespace ops
}  // namespace longhaul
