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
  bool use_quote_delim = true;  // fields may be in double quotes, as in RFC 4180
  std::string na_value{};       // the text of a missing value, in addition to an empty field
  // The columns to return, counted from 0, in increasing order; empty: all.
  std::vector<int64_t> select_cols{};
  // The names of the records, for messages: a string for each record, such as a text line reader's keys ("file:line").
  std::optional<Output> keys{};
};

// A feature with exactly as many values as the shape has elements. If an example lacks it, it gets the default (of that
// shape, or one value for all elements); without a default, that is an error.
struct FixedLenFeature {
  DType dtype = kFloat;  // float, int64 or string, as for all features
  Shape shape{};
  std::optional<Tensor> default_value{};
};
// A feature with any number of values in each example, including none. It becomes a sparse tensor.
struct VarLenFeature {
  DType dtype = kFloat;
};
// A feature with any number of elements of the shape. It becomes a dense tensor, padded at the end with the default, a
// single value (0 or "").
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

// A value for record_defaults: the column must not be empty.
Tensor required_column(DType dtype);

// Splits records into fields. Returns, for each column, a tensor of the records' shape, with the dtype of the column's
// default: float, double, int32, int64 or string. InvalidArgumentError, with the record's key or number and the column
// (from 1): the record is malformed or has a wrong number of fields; a field is not such a number; a required field is
// empty.
std::vector<Output> decode_csv(const Scope& scope, const Output& records, const std::vector<Tensor>& record_defaults,
                               const CsvOptions& options = {}, std::string_view name = "DecodeCSV");

// Reads the bytes of strings as numbers, in one more dimension. InvalidArgumentError: the lengths differ, or are not
// multiples of the dtype's size.
Output decode_raw(const Scope& scope, const Output& bytes, DType dtype, bool little_endian = true,
                  std::string_view name = "DecodeRaw");

// Parses serialized tf.Example messages: a vector of them, or a scalar (the results of a single example have no batch
// dimension). `names`: a string for each example, for messages. InvalidArgumentError, with the example and the key: it
// is not such a message; a feature is missing, is of another kind, or has another number of values.
ParsedFeatures parse_example(const Scope& scope, const Output& serialized, const Features& features,
                             const std::optional<Output>& names = {}, std::string_view name = "ParseExample");
ParsedFeatures parse_single_example(const Scope& scope, const Output& serialized, const Features& features,
                                    std::string_view name = "ParseSingleExample");

// Converts decimal texts to float, double, int32 or int64. InvalidArgumentError: a text is not a number, or too large.
Output string_to_number(const Scope& scope, const Output& texts, DType dtype = kFloat,
                        std::string_view name = "StringToNumber");

// Convert sparse tensors to strings, which can be put into queues. serialize_sparse makes a vector of 3 strings.
// serialize_many_sparse splits the first dimension and makes a row of 3 for each part. deserialize_many_sparse joins
// such rows, [N, 3], along a new first dimension.
Output serialize_sparse(const Scope& scope, const SparseOutput& sparse, std::string_view name = "SerializeSparse");
Output serialize_many_sparse(const Scope& scope, const SparseOutput& sparse,
                             std::string_view name = "SerializeManySparse");
// `rank` is that of the serialized tensors; -1: unknown.
SparseOutput deserialize_many_sparse(const Scope& scope, const Output& serialized, DType dtype, int rank = -1,
                                     std::string_view name = "DeserializeManySparse");

}  // namespace ops
}  // namespace longhaul
