#include "longhaul/host/parsing/feature_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "longhaul/proto/wire_reader.h"

namespace longhaul {
namespace {

// The fields of Feature.
enum Kind : uint32_t { kNone = 0, kBytesList = 1, kFloatList = 2, kInt64List = 3 };

const char* kind_name(uint32_t kind) {
  return kind == kBytesList ? "string" : kind == kFloatList ? "float" : "int64";
}

uint32_t kind_of(DType dtype) {
  return dtype == kString ? kBytesList : dtype == kFloat ? kFloatList : kInt64List;
}

[[noreturn]] void throw_malformed() {
  throw InvalidArgumentError("could not parse the serialized Feature");
}

void add_values(WireReader& list, uint32_t type, std::vector<std::string>& values) {
  std::string_view bytes;
  if (type != WireReader::kBytes || !list.take_bytes(bytes)) throw_malformed();
  values.emplace_back(bytes);
}

void add_values(WireReader& list, uint32_t type, std::vector<float>& values) {
  std::string_view packed;
  float value;
  if (type == WireReader::kFixed32 && list.take_fixed(value)) return values.push_back(value);
  if (type != WireReader::kBytes || !list.take_bytes(packed) || packed.size() % sizeof(float) != 0) throw_malformed();
  const size_t before = values.size();
  values.resize(before + packed.size() / sizeof(float));
  if (!packed.empty()) std::memcpy(values.data() + before, packed.data(), packed.size());
}

void add_values(WireReader& list, uint32_t type, std::vector<int64_t>& values) {
  std::string_view bytes;
  uint64_t value;
  if (type == WireReader::kVarint && list.take_varint(value)) return values.push_back(static_cast<int64_t>(value));
  if (type != WireReader::kBytes || !list.take_bytes(bytes)) throw_malformed();
  for (WireReader packed(bytes); !packed.done();) {
    if (!packed.take_varint(value)) throw_malformed();
    values.push_back(static_cast<int64_t>(value));
  }
}

template <typename T>
void add_default_values(const Tensor& tensor, size_t count, std::vector<T>& values) {
  const auto given = tensor.flat<T>();
  for (size_t i = 0; i < count; ++i) values.push_back(given[given.size() == 1 ? 0 : i]);
}

}  // namespace

FeatureColumn::FeatureColumn(std::string key, DType dtype) : key_(std::move(key)), dtype_(dtype) {
  switch (dtype) {
    case kFloat: values_ = Floats(); break;
    case kInt64: values_ = Integers(); break;
    case kString: values_ = Strings(); break;
    default: throw InvalidArgumentError(fmt::format("feature {} cannot have type {}", key_, dtype_name(dtype)));
  }
}

FeatureColumn::FeatureColumn(const ExampleSpec::Sparse& wanted) : FeatureColumn(wanted.key, wanted.dtype) {
  sparse_ = true;
}

FeatureColumn::FeatureColumn(const ExampleSpec::Dense& wanted) : FeatureColumn(wanted.key, wanted.dtype) {
  shape_ = wanted.shape;
  default_ = wanted.default_value;
  std::vector<int64_t> dims = shape_.dims();
  if (is_sequence()) dims[0] = 1;
  const int64_t elements = shape_.has_rank() ? Shape(std::move(dims)).num_elements() : -1;
  if (elements < 0)
    throw InvalidArgumentError(fmt::format("feature {} cannot have shape {}", key_, shape_.to_string()));
  elements_ = static_cast<size_t>(elements);
  const auto given = static_cast<size_t>(default_.num_elements());
  if (given > 0 && default_.dtype() != dtype_) {
    throw InvalidArgumentError(fmt::format("the default of feature {} is {}, want {}", key_,
                                           dtype_name(default_.dtype()), dtype_name(dtype_)));
  }
  if (given > 1 && (is_sequence() || given != elements_)) {
    throw InvalidArgumentError(
        fmt::format("the default of feature {} has {} values, which does not match its shape", key_, given));
  }
}

size_t FeatureColumn::size() const {
  return std::visit([](const auto& values) { return values.size(); }, values_);
}

void FeatureColumn::truncate(size_t size) {
  std::visit([&](auto& values) { values.resize(size); }, values_);
}

// The last kind counts, and its lists one after another: a message may be the concatenation of several.
void FeatureColumn::add(std::string_view feature) {
  const size_t before = size();
  uint32_t kind = kNone, field, type;
  for (WireReader reader(feature); !reader.done();) {
    if (!reader.take_tag(field, type)) throw_malformed();
    std::string_view list;
    if (field > kInt64List || type != WireReader::kBytes) {
      if (!reader.skip(type)) throw_malformed();
      continue;
    }
    if (!reader.take_bytes(list)) throw_malformed();
    if (field != kind) truncate(before);
    kind = field;
    if (kind == kind_of(dtype_)) add_list(list);
  }
  if (kind == kNone) {
    add_default();
  } else {
    check_kind(kind);
    check_count(size() - before);
  }
  counts_.push_back(size() - before);
}

void FeatureColumn::check_kind(uint32_t kind) const {
  if (kind == kind_of(dtype_)) return;
  throw InvalidArgumentError(fmt::format("its data type is {}, want {}", kind_name(kind), dtype_name(dtype_)));
}

void FeatureColumn::add_list(std::string_view list) {
  uint32_t field, type;
  for (WireReader reader(list); !reader.done();) {
    if (!reader.take_tag(field, type)) throw_malformed();
    if (field == 1) {
      std::visit([&](auto& values) { add_values(reader, type, values); }, values_);
    } else if (!reader.skip(type)) {
      throw_malformed();
    }
  }
}

void FeatureColumn::add_default() {
  if (sparse_ || is_sequence()) return;
  if (default_.num_elements() == 0 && elements_ > 0) {
    throw InvalidArgumentError(fmt::format("it is required ({}) but could not be found", dtype_name(dtype_)));
  }
  std::visit([&](auto& values) { add_default_values(default_, elements_, values); }, values_);
}

void FeatureColumn::check_count(size_t count) const {
  if (sparse_) return;
  if (is_sequence() && (elements_ == 0 ? count != 0 : count % elements_ != 0)) {
    throw InvalidArgumentError(fmt::format("it has {} values, which is not a multiple of {}", count, elements_));
  }
  if (!is_sequence() && count != elements_) {
    throw InvalidArgumentError(
        fmt::format("it has {} values, want {} for its shape {}", count, elements_, shape_.to_string()));
  }
}

Tensor FeatureColumn::values(const Shape& shape) {
  Tensor tensor(dtype_, shape);
  std::visit(
      [&](auto& values) {
        using Value = typename std::decay_t<decltype(values)>::value_type;
        std::move(values.begin(), values.end(), tensor.mutable_flat<Value>().begin());
      },
      values_);
  return tensor;
}

Tensor FeatureColumn::padded(const Shape& shape, size_t longest) {
  Tensor tensor(dtype_, shape);
  std::visit(
      [&](auto& values) {
        using Value = typename std::decay_t<decltype(values)>::value_type;
        const auto out = tensor.mutable_flat<Value>();
        const Value fill = default_.num_elements() == 0 ? Value() : default_.flat<Value>()[0];
        std::fill(out.begin(), out.end(), fill);
        auto from = values.begin();
        for (size_t i = 0; i < counts_.size(); ++i) {
          const auto end = from + static_cast<std::ptrdiff_t>(counts_[i]);
          std::move(from, end, out.begin() + static_cast<std::ptrdiff_t>(i * longest));
          from = end;
        }
      },
      values_);
  return tensor;
}

Tensor FeatureColumn::take_dense(bool single) {
  std::vector<int64_t> dims = shape_.dims();
  const size_t longest = counts_.empty() ? 0 : *std::max_element(counts_.begin(), counts_.end());
  if (is_sequence()) dims[0] = elements_ == 0 ? 0 : static_cast<int64_t>(longest / elements_);
  if (!single) dims.insert(dims.begin(), static_cast<int64_t>(counts_.size()));
  const Shape shape(std::move(dims));
  return is_sequence() ? padded(shape, longest) : values(shape);
}

SparseTensor FeatureColumn::take_sparse(bool single) {
  const auto count = static_cast<int64_t>(size());
  const auto longest = static_cast<int64_t>(counts_.empty() ? 0 : *std::max_element(counts_.begin(), counts_.end()));
  Tensor indices(kInt64, {count, single ? 1 : 2});
  int64_t* out = indices.mutable_flat<int64_t>().data();
  for (size_t example = 0; example < counts_.size(); ++example) {
    for (size_t i = 0; i < counts_[example]; ++i) {
      if (!single) *out++ = static_cast<int64_t>(example);
      *out++ = static_cast<int64_t>(i);
    }
  }
  const auto batch = static_cast<int64_t>(counts_.size());
  Tensor dense_shape = single ? Tensor::of<int64_t>({longest}) : Tensor::of<int64_t>({batch, longest});
  return {std::move(indices), values({count}), std::move(dense_shape)};
}

}  // namespace longhaul
