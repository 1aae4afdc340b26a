#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "longhaul/base/mutex.h"
#include "longhaul/host/resource.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// Keys (int64 or string) and their values (float, double, int32, int64, bool or string). Several threads may read at
// once; otherwise, one thread.
class TableContents {
 public:
  // InvalidArgumentError: other dtypes.
  static std::unique_ptr<TableContents> make(DType keys, DType values);
  virtual ~TableContents() = default;

  // A key with two values: the row of the tensors with the second one.
  struct Clash {
    int64_t row = 0;
    std::string what;  // "key a has value 1, cannot add value 2"
  };

  // Keys and values must have the same size and the dtypes given to make(). Returns the first clash; all pairs before
  // it are added.
  virtual std::optional<Clash> add_new(const Tensor& keys, const Tensor& values) = 0;
  virtual void replace(const Tensor& keys, const Tensor& values) = 0;  // also existing keys
  virtual void remove(const Tensor& keys) = 0;                         // existing keys; others are ignored
  virtual Tensor find(const Tensor& keys, const Tensor& default_value) const = 0;
  virtual std::pair<Tensor, Tensor> sorted() const = 0;  // 1-D keys and values, by ascending key
  virtual int64_t size() const = 0;
};

// A table of a session. Any thread.
class LookupTable : public Resource {
 public:
  LookupTable(DType keys, DType values) : key_dtype_(keys), value_dtype_(values) {}
  DType key_dtype() const { return key_dtype_; }
  DType value_dtype() const { return value_dtype_; }

  // The values of the keys, in their shape; `default_value` (a scalar) for missing keys.
  virtual Tensor find(const Tensor& keys, const Tensor& default_value) = 0;
  virtual std::pair<Tensor, Tensor> sorted() = 0;
  virtual int64_t size() = 0;

 protected:
  // InvalidArgumentError: the dtypes are not the table's, or there is not one value for each key.
  void check_keys(const Tensor& keys) const;
  void check_pairs(const Tensor& keys, const Tensor& values) const;

 private:
  const DType key_dtype_, value_dtype_;
};

// `HashTableV2`: filled once, and from then on read without a lock.
//
//   empty --initialize--> initialized
//
// Reading before that: FailedPreconditionError "Table not initialized."; the size is 0.
class ConstantTable : public LookupTable {
 public:
  ConstantTable(DType keys, DType values) : LookupTable(keys, values) {}

  // InvalidArgumentError: a key with two values; if the rows are lines of `file`, the message names the line.
  // FailedPreconditionError: it already has other contents. Initialising again with the same contents is fine.
  void initialize(const Tensor& keys, const Tensor& values, const std::string& file = "") EXCLUDES(mutex_);

  Tensor find(const Tensor& keys, const Tensor& default_value) override;
  std::pair<Tensor, Tensor> sorted() override;
  int64_t size() override;

 private:
  const TableContents& contents() const;

  std::atomic<bool> initialized_{false};  // written after contents_
  Mutex mutex_;                           // held while initialising
  std::unique_ptr<TableContents> contents_;
};

// `MutableHashTableV2`: may be changed while it is read.
class MutableTable : public LookupTable {
 public:
  MutableTable(DType keys, DType values);

  void insert(const Tensor& keys, const Tensor& values) EXCLUDES(mutex_);  // replaces existing keys
  void remove(const Tensor& keys) EXCLUDES(mutex_);
  // Replaces the contents.
  void import(const Tensor& keys, const Tensor& values) EXCLUDES(mutex_);

  Tensor find(const Tensor& keys, const Tensor& default_value) override EXCLUDES(mutex_);
  std::pair<Tensor, Tensor> sorted() override EXCLUDES(mutex_);
  int64_t size() override EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::unique_ptr<TableContents> contents_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
