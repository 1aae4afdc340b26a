#include "longhaul/host/tables/lookup_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace longhaul {
namespace {

// Code that does not need both types is compiled for each type, and not for each pair of types.
template <typename K>
struct PairOfKey {
  const K* key;
  const void* value;
};

template <typename K>
void sort_by_key(std::vector<PairOfKey<K>>& pairs) {
  std::sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return *a.key < *b.key; });
}

std::string clash_text(const std::string& key, const std::string& there, const std::string& added) {
  return fmt::format("key {} has value {}, cannot add value {}", key, there, added);
}

template <typename K, typename V>
class TypedContents : public TableContents {
 public:
  std::optional<Clash> add_new(const Tensor& keys, const Tensor& values) override {
    const auto key = keys.flat<K>();
    const auto value = values.flat<V>();
    map_.reserve(map_.size() + key.size());
    for (size_t i = 0; i < key.size(); ++i) {
      const auto [there, is_new] = map_.try_emplace(key[i], value[i]);
      if (is_new || there->second == value[i]) continue;
      return Clash{static_cast<int64_t>(i),
                   clash_text(fmt::to_string(key[i]), fmt::to_string(there->second), fmt::to_string(value[i]))};
    }
    return std::nullopt;
  }

  void replace(const Tensor& keys, const Tensor& values) override {
    const auto key = keys.flat<K>();
    const auto value = values.flat<V>();
    for (size_t i = 0; i < key.size(); ++i) map_.insert_or_assign(key[i], value[i]);
  }

  void remove(const Tensor& keys) override {
    for (const K& key : keys.flat<K>()) map_.erase(key);
  }

  Tensor find(const Tensor& keys, const Tensor& default_value) const override {
    const V missing = default_value.item<V>();
    Tensor found(kDTypeOf<V>, keys.shape());
    const auto out = found.mutable_flat<V>();
    const auto key = keys.flat<K>();
    for (size_t i = 0; i < key.size(); ++i) {
      const auto it = map_.find(key[i]);
      out[i] = it == map_.end() ? missing : it->second;
    }
    return found;
  }

  std::pair<Tensor, Tensor> sorted() const override {
    std::vector<PairOfKey<K>> pairs;
    for (const auto& [key, value] : map_) pairs.push_back({&key, &value});
    sort_by_key(pairs);
    const Shape shape{size()};
    std::pair<Tensor, Tensor> result{Tensor(kDTypeOf<K>, shape), Tensor(kDTypeOf<V>, shape)};
    const auto keys = result.first.template mutable_flat<K>();
    const auto values = result.second.template mutable_flat<V>();
    for (size_t i = 0; i < pairs.size(); ++i) {
      keys[i] = *pairs[i].key;
      values[i] = *static_cast<const V*>(pairs[i].value);
    }
    return result;
  }

  int64_t size() const override { return static_cast<int64_t>(map_.size()); }

 private:
  std::unordered_map<K, V> map_;
};

template <typename K>
std::unique_ptr<TableContents> make_with_values(DType values) {
  switch (values) {
    case kFloat: return std::make_unique<TypedContents<K, float>>();
    case kDouble: return std::make_unique<TypedContents<K, double>>();
    case kInt32: return std::make_unique<TypedContents<K, int32_t>>();
    case kInt64: return std::make_unique<TypedContents<K, int64_t>>();
    case kBool: return std::make_unique<TypedContents<K, bool>>();
    case kString: return std::make_unique<TypedContents<K, std::string>>();
    default: throw InvalidArgumentError(fmt::format("a table cannot have values of type {}", dtype_name(values)));
  }
}

}  // namespace

std::unique_ptr<TableContents> TableContents::make(DType keys, DType values) {
  if (keys == kInt64) return make_with_values<int64_t>(values);
  if (keys == kString) return make_with_values<std::string>(values);
  throw InvalidArgumentError(fmt::format("a table cannot have keys of type {}", dtype_name(keys)));
}

void LookupTable::check_keys(const Tensor& keys) const {
  if (keys.dtype() == key_dtype_) return;
  throw InvalidArgumentError(
      fmt::format("the table's keys are {}, not {}", dtype_name(key_dtype_), dtype_name(keys.dtype())));
}

void LookupTable::check_pairs(const Tensor& keys, const Tensor& values) const {
  check_keys(keys);
  if (values.dtype() != value_dtype_) {
    throw InvalidArgumentError(
        fmt::format("the table's values are {}, not {}", dtype_name(value_dtype_), dtype_name(values.dtype())));
  }
  if (keys.num_elements() != values.num_elements()) {
    throw InvalidArgumentError(
        fmt::format("there are {} keys but {} values", keys.num_elements(), values.num_elements()));
  }
}

void ConstantTable::initialize(const Tensor& keys, const Tensor& values, const std::string& file) {
  check_pairs(keys, values);
  std::unique_ptr<TableContents> filled = TableContents::make(key_dtype(), value_dtype());
  if (const auto clash = filled->add_new(keys, values)) {
    const std::string place = file.empty() ? "" : fmt::format("{}:{}: ", file, clash->row + 1);
    throw InvalidArgumentError(place + "HashTable has different value for same key: " + clash->what);
  }
  MutexLock lock(mutex_);
  if (!initialized_) {
    contents_ = std::move(filled);
    initialized_ = true;
    return;
  }
  const auto there = contents_->sorted(), wanted = filled->sorted();
  if (!identical(there.first, wanted.first) || !identical(there.second, wanted.second)) {
    throw FailedPreconditionError("Table was already initialized with different data.");
  }
}

const TableContents& ConstantTable::contents() const {
  if (!initialized_) throw FailedPreconditionError("Table not initialized.");
  return *contents_;
}

Tensor ConstantTable::find(const Tensor& keys, const Tensor& default_value) {
  check_keys(keys);
  return contents().find(keys, default_value);
}

std::pair<Tensor, Tensor> ConstantTable::sorted() {
  return contents().sorted();
}

int64_t ConstantTable::size() {
  return initialized_ ? contents_->size() : 0;
}

MutableTable::MutableTable(DType keys, DType values)
    : LookupTable(keys, values), contents_(TableContents::make(keys, values)) {}

void MutableTable::insert(const Tensor& keys, const Tensor& values) {
  check_pairs(keys, values);
  MutexLock lock(mutex_);
  contents_->replace(keys, values);
}

void MutableTable::remove(const Tensor& keys) {
  check_keys(keys);
  MutexLock lock(mutex_);
  contents_->remove(keys);
}

void MutableTable::import(const Tensor& keys, const Tensor& values) {
  check_pairs(keys, values);
  std::unique_ptr<TableContents> fresh = TableContents::make(key_dtype(), value_dtype());
  fresh->replace(keys, values);
  MutexLock lock(mutex_);
  contents_.swap(fresh);
}

Tensor MutableTable::find(const Tensor& keys, const Tensor& default_value) {
  check_keys(keys);
  MutexLock lock(mutex_);
  return contents_->find(keys, default_value);
}

std::pair<Tensor, Tensor> MutableTable::sorted() {
  MutexLock lock(mutex_);
  return contents_->sorted();
}

int64_t MutableTable::size() {
  MutexLock lock(mutex_);
  return contents_->size();
}

}  // namespace longhaul
