#include <fmt/format.h>

#include <algorithm>

#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {
namespace {

constexpr int64_t kWholeLine = -2, kLineNumber = -1;

bool is_one_of(DType dtype, std::initializer_list<DType> allowed) {
  return std::find(allowed.begin(), allowed.end(), dtype) != allowed.end();
}

OpInfo resolve_table(const OperationSpec& spec) {
  need_inputs(spec, 0);
  const DType keys = need_attr<DType>(spec, "key_dtype"), values = need_attr<DType>(spec, "value_dtype");
  if (!is_one_of(keys, {kInt64, kString})) {
    refuse(spec, fmt::format("keys must be int64 or string, not {}", dtype_name(keys)));
  }
  if (!is_one_of(values, {kFloat, kDouble, kInt32, kInt64, kBool, kString})) {
    refuse(spec, fmt::format("values must be float, double, int32, int64, bool or string, not {}", dtype_name(values)));
  }
  return resource_handle();
}

DType key_dtype(const OperationSpec& spec) {
  return spec.inputs[0].op().attr<DType>("key_dtype");
}
DType value_dtype(const OperationSpec& spec) {
  return spec.inputs[0].op().attr<DType>("value_dtype");
}

void need_table(const OperationSpec& spec) {
  need_resource(spec, 0, {"HashTableV2", "MutableHashTableV2"}, "a table");
}
void need_mutable_table(const OperationSpec& spec) {
  need_resource(spec, 0, {"MutableHashTableV2"}, "a mutable table");
}
void need_constant_table(const OperationSpec& spec) {
  need_resource(spec, 0, {"HashTableV2"}, "a table that is initialised once");
}

void need_pairs(const OperationSpec& spec) {
  need_dtype(spec, 1, key_dtype(spec));
  need_dtype(spec, 2, value_dtype(spec));
  if (!spec.inputs[1].shape().compatible_with(spec.inputs[2].shape())) {
    refuse(spec, fmt::format("keys have shape {}, but values {}; there must be one value for each key",
                             spec.inputs[1].shape().to_string(), spec.inputs[2].shape().to_string()));
  }
}

OpInfo resolve_find(const OperationSpec& spec) {
  need_inputs(spec, 3);
  need_table(spec);
  need_dtype(spec, 1, key_dtype(spec));
  need_dtype(spec, 2, value_dtype(spec));
  if (!spec.inputs[2].shape().compatible_with({})) {
    refuse(spec, "the default value must be a scalar, not " + spec.inputs[2].shape().to_string());
  }
  return {{{value_dtype(spec), spec.inputs[1].shape()}}, kPure, 1};
}

OpInfo resolve_table_size(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_table(spec);
  return {{{kInt64, {}}}, kPure, 1};
}

OpInfo resolve_export(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_table(spec);
  return {{{key_dtype(spec), {-1}}, {value_dtype(spec), {-1}}}, kPure, 1};
}

OpInfo resolve_initialize(const OperationSpec& spec) {
  need_inputs(spec, 3);
  need_constant_table(spec);
  need_pairs(spec);
  return {{}, kSideEffect, 1};
}

void check_index(const OperationSpec& spec, const std::string& what, DType dtype) {
  const int64_t index = need_attr<int64_t>(spec, what + "_index");
  if (index < kWholeLine) refuse(spec, fmt::format("{}_index: Invalid column index {}", what, index));
  const DType wanted = index == kLineNumber ? kInt64 : kString;
  if (index < 0 && dtype != wanted) {
    refuse(spec, fmt::format("{}_index {}: the {} requires a table {} dtype of {}, not {}", what, index,
                             index == kLineNumber ? "line number" : "whole line", what, dtype_name(wanted),
                             dtype_name(dtype)));
  }
  if (dtype == kBool) refuse(spec, what + ": bool cannot be read from a file");
}

OpInfo resolve_initialize_from_file(const OperationSpec& spec) {
  need_inputs(spec, 2);
  need_constant_table(spec);
  need_dtype(spec, 1, kString);
  check_index(spec, "key", key_dtype(spec));
  check_index(spec, "value", value_dtype(spec));
  const int64_t vocab_size = need_attr<int64_t>(spec, "vocab_size");
  if (vocab_size < -1 || vocab_size == 0) refuse(spec, fmt::format("Invalid vocab_size {}", vocab_size));
  if (need_attr<std::string>(spec, "delimiter").size() != 1) refuse(spec, "delimiter should be only 1 char");
  return {{}, kSideEffect, 1};
}

OpInfo resolve_insert(const OperationSpec& spec) {
  need_inputs(spec, 3);
  need_mutable_table(spec);
  need_pairs(spec);
  return {{}, kSideEffect, 1};
}

OpInfo resolve_remove(const OperationSpec& spec) {
  need_inputs(spec, 2);
  need_mutable_table(spec);
  need_dtype(spec, 1, key_dtype(spec));
  return {{}, kSideEffect, 1};
}

}  // namespace

ResolverTable lookup_ops() {
  return {
      {"HashTableV2", resolve_table},
      {"MutableHashTableV2", resolve_table},
      {"LookupTableFindV2", resolve_find},
      {"LookupTableSizeV2", resolve_table_size},
      {"LookupTableExportV2", resolve_export},
      {"InitializeTableV2", resolve_initialize},
      {"InitializeTableFromTextFileV2", resolve_initialize_from_file},
      {"LookupTableInsertV2", resolve_insert},
      {"LookupTableRemoveV2", resolve_remove},
      {"LookupTableImportV2", resolve_insert},
  };
}

}  // namespace longhaul::builtin
