#include "longhaul/ops/input/lookup_ops.h"

#include <numeric>

#include "longhaul/ops/saveable.h"
#include "longhaul/ops/state_ops.h"

namespace longhaul {

Output Table::lookup(const Scope& scope, const Output& keys, std::string_view name) const {
  return scope.add("LookupTableFindV2", name, {handle_, keys, default_value_}).output();
}

Output Table::size(const Scope& scope, std::string_view name) const {
  return scope.add("LookupTableSizeV2", name, {handle_}).output();
}

Operation Table::export_all(const Scope& scope, std::string_view name) const {
  return scope.add("LookupTableExportV2", name, {handle_});
}

Operation MutableHashTable::insert(const Scope& scope, const Output& keys, const Output& values,
                                   std::string_view name) const {
  return scope.add("LookupTableInsertV2", name, {handle(), keys, values});
}

Operation MutableHashTable::remove(const Scope& scope, const Output& keys, std::string_view name) const {
  return scope.add("LookupTableRemoveV2", name, {handle(), keys});
}

Operation MutableHashTable::import_all(const Scope& scope, const Output& keys, const Output& values,
                                       std::string_view name) const {
  return scope.add("LookupTableImportV2", name, {handle(), keys, values});
}

namespace ops {
namespace {

struct Dtypes {
  DType keys, values;
};

Dtypes dtypes_of(const KeyValueTensorInitializer& initializer) {
  return {initializer.keys.dtype(), initializer.values.dtype()};
}
Dtypes dtypes_of(const TextFileInitializer& initializer) {
  return {initializer.key_dtype, initializer.value_dtype};
}

Operation add_initializer(const Scope& scope, const Output& handle, const KeyValueTensorInitializer& from) {
  return scope.add("InitializeTableV2", "table_init", {handle, from.keys, from.values});
}
Operation add_initializer(const Scope& scope, const Output& handle, const TextFileInitializer& from) {
  const Output filename = constant(scope, Tensor::scalar(from.filename), "filename");
  return scope.add("InitializeTableFromTextFileV2", "table_init", {handle, filename},
                   {{"key_index", from.key_index},
                    {"value_index", from.value_index},
                    {"vocab_size", from.vocab_size},
                    {"delimiter", from.delimiter}});
}

Table add_table(const Scope& scope, const std::string& type, const std::string& name, Dtypes dtypes,
                Tensor default_value, const TableOptions& options) {
  const Operation handle = scope.add(type, name, {},
                                     {{"key_dtype", dtypes.keys},
                                      {"value_dtype", dtypes.values},
                                      {"shared_name", options.shared_name},
                                      {"container", std::string()},
                                      {"use_node_name_sharing", true}});
  if (default_value.dtype() != dtypes.values || default_value.shape() != Shape{}) {
    throw InvalidArgumentError("table " + handle.name() + ": its default value must be a scalar of " +
                               dtype_name(dtypes.values) + ", not " + default_value.to_string());
  }
  return Table(handle.output(), constant(scope, std::move(default_value), name + "_default"));
}

void make_saveable(const MutableHashTable& table, const Scope& scope) {
  const Operation contents = table.export_all(scope.within(table.name().substr(scope.prefix().size())));
  add_saveable(scope.graph(), {.name = table.name(),
                               .op = table.handle().op(),
                               .parts = {{table.name() + "-keys", contents.output(0), {}},
                                         {table.name() + "-values", contents.output(1), {}}},
                               .restore = [table](const Scope& where, const std::vector<Output>& restored) {
                                 return table.import_all(where, restored[0], restored[1]);
                               }});
}

TableOptions named(TableOptions options, const char* name) {
  if (options.name.empty()) options.name = name;
  return options;
}

}  // namespace

HashTable hash_table(const Scope& scope, const TableInitializer& initializer, Tensor default_value,
                     const TableOptions& options) {
  const Dtypes dtypes = std::visit([](const auto& from) { return dtypes_of(from); }, initializer);
  const std::string name = named(options, "hash_table").name;
  const Table table = add_table(scope, "HashTableV2", name, dtypes, std::move(default_value), options);
  const Operation fill = std::visit(
      [&](const auto& from) { return add_initializer(scope.sub(name + "_init"), table.handle(), from); }, initializer);
  scope.graph().add_to_collection(collections::kTableInitializers, fill);
  return HashTable(table, fill);
}

MutableHashTable mutable_hash_table(const Scope& scope, DType key_dtype, DType value_dtype, Tensor default_value,
                                    const TableOptions& options) {
  const std::string name = named(options, "MutableHashTable").name;
  const MutableHashTable table(
      add_table(scope, "MutableHashTableV2", name, {key_dtype, value_dtype}, std::move(default_value), options));
  make_saveable(table, scope);
  return table;
}

HashTable index_table_from_file(const Scope& scope, const std::string& vocabulary_file, int64_t vocab_size,
                                int64_t default_value, const TableOptions& options) {
  return hash_table(scope, TextFileInitializer{.filename = vocabulary_file, .vocab_size = vocab_size},
                    Tensor::scalar(default_value), named(options, "string_to_index"));
}

HashTable index_to_string_table_from_file(const Scope& scope, const std::string& vocabulary_file, int64_t vocab_size,
                                          const std::string& default_value, const TableOptions& options) {
  return hash_table(scope,
                    TextFileInitializer{.filename = vocabulary_file,
                                        .key_dtype = kInt64,
                                        .key_index = TextFileInitializer::kLineNumber,
                                        .value_dtype = kString,
                                        .value_index = TextFileInitializer::kWholeLine,
                                        .vocab_size = vocab_size},
                    Tensor::scalar(default_value), named(options, "index_to_string"));
}

HashTable index_table_from_tensor(const Scope& scope, const Tensor& vocabulary, int64_t default_value,
                                  const TableOptions& options) {
  std::vector<int64_t> numbers(static_cast<size_t>(vocabulary.num_elements()));
  std::iota(numbers.begin(), numbers.end(), 0);
  const TableOptions with_name = named(options, "string_to_index");
  const Scope inner = scope.sub(with_name.name + "_vocabulary");
  const KeyValueTensorInitializer from{constant(inner, vocabulary, "keys"),
                                       constant(inner, Tensor::of(numbers), "values")};
  return hash_table(scope, from, Tensor::scalar(default_value), with_name);
}

Operation tables_initializer(const Scope& scope, std::string_view name) {
  return group(scope, scope.graph().collection_of<Operation>(collections::kTableInitializers), name);
}

}  // namespace ops
}  // namespace longhaul
