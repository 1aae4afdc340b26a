#include "longhaul/cluster/transport/tensor_message.h"

#include <fmt/format.h>

#include "longhaul/proto/tensor.pb.h"
#include "longhaul/proto/tensor_shape.pb.h"
#include "longhaul/proto/wire_reader.h"

namespace longhaul {
namespace {

using TensorFields = proto::TensorProto;
using ShapeFields = proto::TensorShapeProto;

constexpr uint32_t kBytesType = WireReader::kBytes;

size_t varint_bytes(uint64_t value) {
  size_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

// The size of a field of that many bytes, with its tag, which is one byte here.
size_t counted_bytes(uint64_t bytes) {
  return 1 + varint_bytes(bytes) + bytes;
}

// As protobuf writes it: zeros are left out.
std::string shape_message(const Shape& shape) {
  SliceWriter dims;
  for (int64_t size : shape.dims()) {
    SliceWriter dim;
    if (size != 0) {
      dim.tag(ShapeFields::Dim::kSizeFieldNumber, WireReader::kVarint);
      dim.varint(static_cast<uint64_t>(size));
    }
    dims.counted(ShapeFields::kDimFieldNumber, joined(dim.take()));
  }
  return joined(dims.take());
}

size_t values_bytes(const Tensor& tensor) {
  if (tensor.dtype() != kString) return tensor.num_elements() == 0 ? 0 : counted_bytes(tensor.size_bytes());
  size_t bytes = 0;
  for (const std::string& text : tensor.flat<std::string>()) bytes += counted_bytes(text.size());
  return bytes;
}

void write_values(SliceWriter& out, const Tensor& tensor) {
  const auto write = [&](uint32_t field, std::string_view bytes) {
    out.tag(field, kBytesType);
    out.varint(bytes.size());
    out.borrow(bytes, tensor.owner());
  };
  if (tensor.dtype() == kString) {
    for (const std::string& text : tensor.flat<std::string>()) write(TensorFields::kStringValFieldNumber, text);
  } else if (tensor.num_elements() > 0) {
    write(TensorFields::kTensorContentFieldNumber, {static_cast<const char*>(tensor.data()), tensor.size_bytes()});
  }
}

// Decodes one TensorProto, field by field.
class TensorReading {
 public:
  TensorReading(SliceReader& in, size_t size, const std::string& what, NewTensor make)
      : in_(in), end_(in.left() - size), what_(what), make_(make) {}

  Tensor read() {
    while (in_.left() > end_) take_field();
    need(in_.left() == end_, "a field ends after it");
    need_tensor();
    const bool lacks = tensor_.dtype() == kString ? filled_ < static_cast<size_t>(tensor_.num_elements())
                                                  : tensor_.num_elements() > 0 && filled_ == 0;
    need(!lacks, "it has fewer values than its shape says");
    return std::move(tensor_);
  }

 private:
  void take_field() {
    uint32_t field, type;
    need(in_.take_tag(field, type), "a field is damaged");
    switch (field) {
      case TensorFields::kDtypeFieldNumber: return take_dtype(type);
      case TensorFields::kTensorShapeFieldNumber: return take_shape(length_of(type));
      case TensorFields::kVersionNumberFieldNumber: return need(in_.skip_field(type), "its version is damaged");
      case TensorFields::kTensorContentFieldNumber: return take_content(length_of(type));
      case TensorFields::kStringValFieldNumber: return take_string(length_of(type));
      default: refuse(fmt::format("field {} is none of dtype, shape, tensor_content and string_val", field));
    }
  }

  void take_dtype(uint32_t type) {
    uint64_t number = 0;
    need(type == WireReader::kVarint && in_.take_varint(number), "its dtype is damaged");
    need(dtype_ == kInvalid && !tensor_.defined(), "it has two dtypes");
    if (number > INT32_MAX || !is_known_dtype(static_cast<int>(number)) || number == kResource) {
      refuse(fmt::format("dtype {} is not supported", number));
    }
    dtype_ = static_cast<DType>(number);
  }

  void take_shape(size_t size) {
    constexpr size_t kMostDimensions = 254;  // TensorFlow's limit
    need(!has_shape_, "it has two shapes");
    has_shape_ = true;
    for (const size_t end = in_.left() - size; in_.left() > end;) {
      uint32_t field, type;
      need(in_.take_tag(field, type), "its shape is damaged");
      need(field == ShapeFields::kDimFieldNumber, "its rank is not known");
      need(dims_.size() < kMostDimensions, "it has more dimensions than TensorFlow allows");
      dims_.push_back(take_dim(length_of(type)));
      need(in_.left() >= end, "a dimension ends after the shape");
    }
  }

  int64_t take_dim(size_t length) {
    uint64_t size = 0;
    const size_t end = in_.left() - length;
    while (in_.left() > end) {
      uint32_t field, type;
      need(in_.take_tag(field, type), "a dimension is damaged");
      if (field == ShapeFields::Dim::kSizeFieldNumber && type == WireReader::kVarint) {
        need(in_.take_varint(size), "a dimension is damaged");
      } else {
        need(in_.skip_field(type), "a dimension is damaged");
      }
    }
    need(in_.left() == end, "a dimension is damaged");
    need(size <= INT64_MAX, "a dimension is negative");
    return static_cast<int64_t>(size);
  }

  void take_content(size_t length) {
    need(dtype_ != kInvalid && dtype_ != kString, "its bytes come before its dtype, or are of strings");
    const Shape shape(dims_);
    const int64_t count = shape.num_elements();
    const size_t element = dtype_size(dtype_);
    if (filled_ > 0 || count < 0 || length % element != 0 || static_cast<size_t>(count) != length / element) {
      refuse(fmt::format("{} {} has {} bytes", dtype_name(dtype_), shape.to_string(), length));
    }
    need_tensor();
    need(in_.take(tensor_.mutable_data(), length), "its bytes end early");
    filled_ = length;
  }

  void take_string(size_t length) {
    need(dtype_ == kString, "its strings come before its dtype, or are not strings");
    need_tensor();
    need(filled_ < static_cast<size_t>(tensor_.num_elements()), "it has more strings than its shape says");
    need(in_.take(tensor_.mutable_flat<std::string>()[filled_++], length), "a string ends early");
  }

  // Called once dtype and shape are known: what follows them is compared with what it needs.
  void need_tensor() {
    if (tensor_.defined()) return need(dims_ == tensor_.shape().dims(), "its shape comes after its values");
    need(dtype_ != kInvalid, "it has no dtype");
    const Shape shape(dims_);
    const int64_t count = shape.num_elements();
    need(count >= 0, "its size is not a number");
    // Each string takes two bytes or more, with the tag that has been taken; numbers have been compared.
    const size_t bytes = in_.left() - end_;
    const size_t most = dtype_ == kString ? bytes / 2 + 2 : bytes / dtype_size(dtype_);
    if (static_cast<size_t>(count) > most) {
      refuse(fmt::format("{} {} is more than its bytes can hold", dtype_name(dtype_), shape.to_string()));
    }
    tensor_ = make_(dtype_, shape);
  }

  size_t length_of(uint32_t type) {
    size_t length = 0;
    need(type == kBytesType && in_.take_length(length) && in_.left() - length >= end_, "a field ends after it");
    return length;
  }

  void need(bool condition, const char* why) const {
    if (!condition) refuse(why);
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw InvalidArgumentError(fmt::format("{}: the tensor cannot be read: {}", what_, why));
  }

  SliceReader& in_;
  const size_t end_;  // what is left behind it
  const std::string& what_;
  const NewTensor make_;
  DType dtype_ = kInvalid;
  bool has_shape_ = false;
  std::vector<int64_t> dims_;
  Tensor tensor_;
  size_t filled_ = 0;  // strings, or bytes
};

}  // namespace

void write_tensor(SliceWriter& out, uint32_t field, const Tensor& tensor) {
  if (!tensor.defined()) {
    throw InvalidArgumentError(fmt::format("no tensor to send: {}", tensor.why_undefined()));
  }
  const std::string shape = shape_message(tensor.shape());
  const uint64_t dtype = static_cast<uint64_t>(tensor.dtype());
  out.tag(field, kBytesType);
  out.varint(1 + varint_bytes(dtype) + counted_bytes(shape.size()) + values_bytes(tensor));
  out.tag(TensorFields::kDtypeFieldNumber, WireReader::kVarint);
  out.varint(dtype);
  out.counted(TensorFields::kTensorShapeFieldNumber, shape);
  write_values(out, tensor);
}

Tensor new_tensor(DType dtype, const Shape& shape) {
  return Tensor(dtype, shape);
}

Tensor read_tensor(SliceReader& in, size_t size, const std::string& what, NewTensor make) {
  if (size > in.left()) throw InvalidArgumentError(fmt::format("{}: a tensor ends after the message", what));
  return TensorReading(in, size, what, make).read();
}

}  // namespace longhaul
