#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "longhaul/graph/scope.h"

namespace longhaul {

// The contents of a HashTable: 1-D keys and values of the same size ...
struct KeyValueTensorInitializer {
  Output keys, values;
};

// ... or the lines of a text file. key_index and value_index are kWholeLine (a string), kLineNumber (an int64, from 0
// on) or a column's number (from 0 on).
struct TextFileInitializer {
  static constexpr int64_t kWholeLine = -2, kLineNumber = -1;
  std::string filename;
  DType key_dtype = kString;
  int64_t key_index = kWholeLine;
  DType value_dtype = kInt64;
  int64_t value_index = kLineNumber;
  int64_t vocab_size = -1;  // number of lines to read; -1: all
  std::string delimiter = "\t";
};

using TableInitializer = std::variant<KeyValueTensorInitializer, TextFileInitializer>;

struct TableOptions {
  std::string name{};         // empty: "hash_table", "MutableHashTable"
  std::string shared_name{};  // tables with the same name are one table in a session; empty: the operation's name
};

// A map from keys (int64 or string) to values (float, double, int32, int64, bool or string) that lives in a session. A
// handle that may be copied.
class Table {
 public:
  Table() = default;
  Table(Output handle, Output default_value) : handle_(std::move(handle)), default_value_(std::move(default_value)) {}

  const Output& handle() const { return handle_; }
  const std::string& name() const { return handle_.op().name(); }
  DType key_dtype() const { return handle_.op().attr<DType>("key_dtype"); }
  DType value_dtype() const { return handle_.op().attr<DType>("value_dtype"); }

  // The values of the keys, in the same shape; the default value for missing keys.
  Output lookup(const Scope& scope, const Output& keys, std::string_view name = "lookup") const;
  Output size(const Scope& scope, std::string_view name = "size") const;  // an int64
  // All entries, 1-D, by ascending key: outputs 0 (keys) and 1 (values).
  Operation export_all(const Scope& scope, std::string_view name = "export_values") const;

 private:
  Output handle_, default_value_;
};

// Filled once in each session, by its initializer, and read-only afterwards. Before that, lookups fail:
// FailedPreconditionError "Table not initialized.".
class HashTable : public Table {
 public:
  HashTable() = default;
  HashTable(Table table, Operation initializer) : Table(std::move(table)), initializer_(initializer) {}
  // Its errors: something missing in the file (FILE:LINE), a key with two values (InvalidArgumentError), contents other
  // than before (FailedPreconditionError).
  Operation initializer() const { return initializer_; }

 private:
  Operation initializer_;
};

// Empty at first, filled and changed by operations. Savers save it with the variables.
class MutableHashTable : public Table {
 public:
  MutableHashTable() = default;
  explicit MutableHashTable(Table table) : Table(std::move(table)) {}
  Operation insert(const Scope& scope, const Output& keys, const Output& values,
                   std::string_view name = "insert") const;  // replaces existing values
  Operation remove(const Scope& scope, const Output& keys, std::string_view name = "remove") const;
  // Replaces all its contents by these.
  Operation import_all(const Scope& scope, const Output& keys, const Output& values,
                       std::string_view name = "import_values") const;
};

namespace ops {

// The initializer is added to collections::kTableInitializers, which a Supervisor runs in every session
// (local_init_op). InvalidArgumentError: unsuitable dtypes or indexes.
HashTable hash_table(const Scope& scope, const TableInitializer& initializer, Tensor default_value,
                     const TableOptions& options = {});
MutableHashTable mutable_hash_table(const Scope& scope, DType key_dtype, DType value_dtype, Tensor default_value,
                                    const TableOptions& options = {});

// The table from each line of a file to its number, and the reverse. The defaults for missing keys are -1 and "UNK",
// unless `default_value` is given.
HashTable index_table_from_file(const Scope& scope, const std::string& vocabulary_file, int64_t vocab_size = -1,
                                int64_t default_value = -1, const TableOptions& options = {});
HashTable index_to_string_table_from_file(const Scope& scope, const std::string& vocabulary_file,
                                          int64_t vocab_size = -1, const std::string& default_value = "UNK",
                                          const TableOptions& options = {});
// The same for the elements of a 1-D tensor and their indices. InvalidArgumentError: it is not 1-D, or its dtype is
// unsuitable.
HashTable index_table_from_tensor(const Scope& scope, const Tensor& vocabulary, int64_t default_value = -1,
                                  const TableOptions& options = {});

// Runs all initializers of collections::kTableInitializers.
Operation tables_initializer(const Scope& scope, std::string_view name = "init_all_tables");

}  // namespace ops
}  // namespace longhaul
