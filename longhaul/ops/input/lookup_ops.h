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

// A map from keys (int64 or string) to values (float, double, int32, int64, bool or string). It lives in the session;
// the object is a handle and may be copied.
class Table {
 public:
  Table() = default;
  Table(Output handle, Output default_value) : handle_(handle), default_value_(default_value) {}

  const Output& handle() const { return handle_; }
  const std::string& name() const { return handle_.op().name(); }
  DType key_dtype() const { return handle_.op().attr<DType>("key_dtype"); }
  DType value_dtype() const { return handle_.op().attr<DType>("value_dtype"); }

  // The values of the keys, in the same shape. A missing key has the default value.
  Output lookup(const Scope& scope, const Output& keys, std::string_view name = "lookup") const;
  Output size(const Scope& scope, std::string_view name = "size") const;  // an int64
  // All entries, 1-D, by ascending key: outputs 0 (keys) and 1 (values).
  Operation export_all(const Scope& scope, std::string_view name = "export_values") const;

 private:
  Output handle_, default_value_;
};

// A table that is filled once in each session, by its initializer, and read-only afterwards. Before that, lookups fail:
// FailedPreconditionError "Table not initialized.".
class HashTable : public Table {
 public:
  HashTable() = default;
  HashTable(Table table, Operation initializer) : Table(table), initializer_(initializer) {}
  // Its errors: something is missing in the file (FILE:LINE); a key has two values (InvalidArgumentError); the contents
  // differ from those of an earlier run (FailedPreconditionError).
  Operation initializer() const { return initializer_; }

 private:
  Operation initializer_;
};

// A table that is empty at first and changed by operations. Savers save it with the variables.
class MutableHashTable : public Table {
 public:
  MutableHashTable() = default;
  explicit MutableHashTable(Table table) : Table(table) {}
  Operation insert(const Scope& scope, const Output& keys, const Output& values,
                   std::string_view name = "insert") const;  // replaces existing values
  Operation remove(const Scope& scope, const Output& keys, std::string_view name = "remove") const;
  // Replaces the contents of the table with these.
  Operation import_all(const Scope& scope, const Output& keys, const Output& values,
                       std::string_view name = "import_values") const;
};

namespace ops {

// Adds the table, and its initializer to collections::kTableInitializers, which a Supervisor runs in every session
// (local_init_op). InvalidArgumentError: unsuitable dtypes or indexes.
HashTable hash_table(const Scope& scope, const TableInitializer& initializer, Tensor default_value,
                     const TableOptions& options = {});
MutableHashTable mutable_hash_table(const Scope& scope, DType key_dtype, DType value_dtype, Tensor default_value,
                                    const TableOptions& options = {});

// A table from each line of a file to its number, and one from numbers to lines. Missing keys have the default -1 or
// "UNK", unless `default_value` is given.
HashTable index_table_from_file(const Scope& scope, const std::string& vocabulary_file, int64_t vocab_size = -1,
                                int64_t default_value = -1, const TableOptions& options = {});
HashTable index_to_string_table_from_file(const Scope& scope, const std::string& vocabulary_file,
                                          int64_t vocab_size = -1, const std::string& default_value = "UNK",
                                          const TableOptions& options = {});
// The same for the elements of a 1-D tensor and their indices. InvalidArgumentError: the tensor is not 1-D, or its
// dtype is unsuitable.
HashTable index_table_from_tensor(const Scope& scope, const Tensor& vocabulary, int64_t default_value = -1,
                                  const TableOptions& options = {});

// Runs all initializers of collections::kTableInitializers.
Operation tables_initializer(const Scope& scope, std::string_view name = "init_all_tables");

}  // namespace ops
}  // namespace longhaul
