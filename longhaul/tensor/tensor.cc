#include "longhaul/tensor/tensor.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "longhaul/tensor/lost_value.h"

namespace longhaul {
namespace {

// What is large begins at a page, so that files are read into it and written from it past the kernel's cache.
constexpr size_t kAlignment = 64, kLarge = 64 * 1024, kAlignmentOfLarge = 4096;

std::shared_ptr<const void> allocate_bytes(size_t bytes) {
  const size_t alignment = bytes < kLarge ? kAlignment : kAlignmentOfLarge;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) throw ResourceExhaustedError(fmt::format("out of memory for a tensor of {} bytes", bytes));
  return {memory, [](const void* p) { std::free(const_cast<void*>(p)); }};
}

// Calls `visit` with a pointer of the elements' type.
template <typename Visit>
auto with_numbers(const Tensor& tensor, Visit visit) {
  switch (tensor.dtype()) {
    case kFloat: return visit(static_cast<const float*>(tensor.data()));
    case kDouble: return visit(static_cast<const double*>(tensor.data()));
    case kInt8: return visit(static_cast<const int8_t*>(tensor.data()));
    case kInt16: return visit(static_cast<const int16_t*>(tensor.data()));
    case kInt32: return visit(static_cast<const int32_t*>(tensor.data()));
    case kInt64: return visit(static_cast<const int64_t*>(tensor.data()));
    case kUInt8: return visit(static_cast<const uint8_t*>(tensor.data()));
    case kUInt16: return visit(static_cast<const uint16_t*>(tensor.data()));
    case kUInt32: return visit(static_cast<const uint32_t*>(tensor.data()));
    case kUInt64: return visit(static_cast<const uint64_t*>(tensor.data()));
    case kBool: return visit(static_cast<const bool*>(tensor.data()));
    case kHalf: return visit(static_cast<const Half*>(tensor.data()));
    case kBFloat16: return visit(static_cast<const BFloat16*>(tensor.data()));
    default: throw InvalidArgumentError(fmt::format("a {} tensor holds no real numbers", dtype_name(tensor.dtype())));
  }
}

template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return static_cast<To>(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace

Tensor::Tensor(DType dtype, Shape shape)
    : dtype_(dtype), shape_(std::move(shape)), num_elements_(shape_.num_elements()) {
  if (!is_known_dtype(dtype))
    throw InvalidArgumentError(
        fmt::format("a tensor cannot have dtype {} ({})", static_cast<int>(dtype), dtype_name(dtype)));
  if (num_elements_ < 0) throw InvalidArgumentError("a tensor needs a fully defined shape, not " + shape_.to_string());
  if (dtype == kString) {
    auto strings = std::make_shared<std::vector<std::string>>(static_cast<size_t>(num_elements_));
    data_ = strings->data();
    owner_ = std::move(strings);
    return;
  }
  int64_t bytes;
  if (__builtin_mul_overflow(num_elements_, static_cast<int64_t>(dtype_size(dtype)), &bytes)) {
    throw InvalidArgumentError("a tensor of shape " + shape_.to_string() + " does not fit in memory");
  }
  owner_ = allocate_bytes(static_cast<size_t>(bytes));
  data_ = owner_.get();
}

Tensor Tensor::wrap(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner,
                    const void* owner_kind) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.num_elements_ = shape.num_elements();
  if (tensor.num_elements_ < 0)
    throw InvalidArgumentError("a tensor needs a fully defined shape, not " + shape.to_string());
  tensor.shape_ = std::move(shape);
  tensor.data_ = data;
  tensor.owner_ = std::move(owner);
  tensor.owner_kind_ = owner_kind;
  return tensor;
}

size_t Tensor::size_bytes() const {
  return static_cast<size_t>(num_elements_) * dtype_size(dtype_);
}

Tensor Tensor::reshaped(Shape shape) const {
  if (shape.num_elements() != num_elements_) {
    throw InvalidArgumentError("cannot reshape " + shape_.to_string() + " to " + shape.to_string());
  }
  Tensor tensor = wrap(dtype_, std::move(shape), data_, owner_);
  return tensor;
}

Tensor Tensor::none(std::string why) {
  Tensor tensor;
  tensor.owner_ = std::make_shared<const std::string>(std::move(why));
  return tensor;
}

std::string Tensor::why_undefined() const {
  if (owner_) return *static_cast<const std::string*>(owner_.get());
  return "it was never assigned, or it is the result of running an operation, which returns no tensor: fetch NAME:0 "
         "for a value";
}

void Tensor::check_defined() const {
  if (defined()) return;
  if (is_lost_value(*this)) throw AbortedError("a result was read that is lost: " + why_undefined());
  throw InvalidArgumentError("an undefined Tensor was read: " + why_undefined());
}

void Tensor::check_dtype(DType wanted) const {
  if (dtype_ != wanted) {
    check_defined();
    throw InvalidArgumentError(fmt::format("a {} tensor was read as {}", dtype_name(dtype_), dtype_name(wanted)));
  }
}

void Tensor::check_count(size_t count) const {
  if (static_cast<size_t>(num_elements_) != count) {
    throw InvalidArgumentError(fmt::format("{} values for a tensor of shape {}", count, shape_.to_string()));
  }
}

void Tensor::check_single() const {
  if (num_elements_ != 1) {
    check_defined();
    throw InvalidArgumentError(
        fmt::format("item() of a tensor of shape {}: it must have one element", shape_.to_string()));
  }
}

int64_t Tensor::item_as_int64() const {
  check_single();
  return with_numbers(*this, [](const auto* p) { return convert<int64_t>(*p); });
}

double Tensor::item_as_double() const {
  check_single();
  return with_numbers(*this, [](const auto* p) { return convert<double>(*p); });
}

std::string Tensor::to_string(int64_t max_elements) const {
  if (!defined()) return "<no tensor>";
  std::string text = fmt::format("{}{} {{", dtype_name(dtype_), shape_.to_string());
  for (int64_t i = 0; i < num_elements_; ++i) {
    if (i > 0) text += ", ";
    if (i == max_elements) {
      text += "...";
      break;
    }
    if (dtype_ == kString) {
      text += fmt::format("\"{}\"", static_cast<const std::string*>(data_)[i]);
    } else if (dtype_ == kComplex64 || dtype_ == kComplex128) {
      const auto value = dtype_ == kComplex64 ? std::complex<double>(static_cast<const std::complex<float>*>(data_)[i])
                                              : static_cast<const std::complex<double>*>(data_)[i];
      text += fmt::format("{}{:+}i", value.real(), value.imag());
    } else {
      text += fmt::format("{}", with_numbers(*this, [i](const auto* p) { return convert<double>(p[i]); }));
    }
  }
  return text + "}";
}

bool identical(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() != kString) return a.size_bytes() == 0 || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
  const auto left = a.flat<std::string>(), right = b.flat<std::string>();
  return std::equal(left.begin(), left.end(), right.begin());
}

}  // namespace longhaul
