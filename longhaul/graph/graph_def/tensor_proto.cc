#include <fmt/format.h>

#include <cstring>

#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/proto/wire_reader.h"

namespace longhaul {
namespace {

// TensorProto's typed fields hold one value for all elements, or one for each; the last one stands for those that are
// missing.
template <typename T, typename Values, typename Convert>
void fill(Tensor& tensor, const Values& values, Convert convert) {
  const std::span<T> out = tensor.mutable_flat<T>();
  if (static_cast<size_t>(values.size()) > out.size()) {
    throw InvalidArgumentError(
        fmt::format("a tensor proto of shape {} has {} values", tensor.shape().to_string(), values.size()));
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (values.size() == 0) {
      out[i] = T{};
    } else {
      out[i] = convert(values[static_cast<int>(std::min(i, static_cast<size_t>(values.size()) - 1))]);
    }
  }
}

template <typename T, typename Values>
void fill_numbers(Tensor& tensor, const Values& values) {
  fill<T>(tensor, values, [](auto value) { return static_cast<T>(value); });
}

template <typename T>
void fill_bits(Tensor& tensor, const google::protobuf::RepeatedField<int32_t>& values) {
  fill<T>(tensor, values, [](int32_t bits) {
    T value;
    value.bits = static_cast<uint16_t>(bits);
    return value;
  });
}

template <typename T, typename Values>
void fill_complex(Tensor& tensor, const Values& values) {
  const std::span<std::complex<T>> out = tensor.mutable_flat<std::complex<T>>();
  if (static_cast<size_t>(values.size()) != 2 * out.size())
    throw InvalidArgumentError("a complex tensor proto has the wrong number of values");
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = {values[static_cast<int>(2 * i)], values[static_cast<int>(2 * i + 1)]};
  }
}

void fill_from_fields(const proto::TensorProto& from, Tensor& tensor) {
  switch (tensor.dtype()) {
    case kFloat: return fill_numbers<float>(tensor, from.float_val());
    case kDouble: return fill_numbers<double>(tensor, from.double_val());
    case kInt32: return fill_numbers<int32_t>(tensor, from.int_val());
    case kInt16: return fill_numbers<int16_t>(tensor, from.int_val());
    case kInt8: return fill_numbers<int8_t>(tensor, from.int_val());
    case kUInt8: return fill_numbers<uint8_t>(tensor, from.int_val());
    case kUInt16: return fill_numbers<uint16_t>(tensor, from.int_val());
    case kInt64: return fill_numbers<int64_t>(tensor, from.int64_val());
    case kUInt32: return fill_numbers<uint32_t>(tensor, from.uint32_val());
    case kUInt64: return fill_numbers<uint64_t>(tensor, from.uint64_val());
    case kBool: return fill_numbers<bool>(tensor, from.bool_val());
    case kHalf: return fill_bits<Half>(tensor, from.half_val());
    case kBFloat16: return fill_bits<BFloat16>(tensor, from.half_val());
    case kComplex64: return fill_complex<float>(tensor, from.scomplex_val());
    case kComplex128: return fill_complex<double>(tensor, from.dcomplex_val());
    case kString: return fill<std::string>(tensor, from.string_val(), [](const std::string& text) { return text; });
    case kResource:
    case kInvalid: break;
  }
  throw InvalidArgumentError("a tensor proto has no dtype");
}

void check_content(const proto::TensorProto& from, DType dtype, const Shape& shape) {
  const size_t bytes = from.tensor_content().size();
  const int64_t count = shape.num_elements();
  if (count >= 0 && bytes % dtype_size(dtype) == 0 && static_cast<size_t>(count) == bytes / dtype_size(dtype)) return;
  throw InvalidArgumentError(
      fmt::format("a tensor proto of {} {} has {} bytes", dtype_name(dtype), shape.to_string(), bytes));
}

// Strings as contents, as TensorFlow's clients send them: all lengths, then all texts.
void fill_from_content(const std::string& content, Tensor& strings) {
  const auto refuse = [&] {
    throw InvalidArgumentError(
        fmt::format("a tensor proto of string {} has contents that are not its strings", strings.shape().to_string()));
  };
  WireReader in(content);
  std::vector<uint64_t> lengths(static_cast<size_t>(strings.num_elements()));
  for (uint64_t& length : lengths) {
    if (!in.take_varint(length)) refuse();
  }
  std::string_view rest = in.rest();
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] > rest.size()) refuse();
    strings.mutable_flat<std::string>()[i] = rest.substr(0, lengths[i]);
    rest.remove_prefix(lengths[i]);
  }
  if (!rest.empty()) refuse();
}

// Each string takes a byte of the contents or more.
void check_string_content(const proto::TensorProto& from, const Shape& shape) {
  const int64_t count = shape.num_elements();
  if (static_cast<size_t>(count) <= from.tensor_content().size()) return;
  throw InvalidArgumentError(
      fmt::format("a tensor proto of string {} has {} bytes", shape.to_string(), from.tensor_content().size()));
}

// One value may stand for many elements: what they take is checked before it is taken.
void check_expansion(const proto::TensorProto& from, DType dtype, const Shape& shape) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 31;
  const int64_t count = shape.num_elements();
  uint64_t bytes = 0, copies = 0;
  bool fits = count >= 0;
  fits = fits && !__builtin_mul_overflow(static_cast<uint64_t>(count),
                                         dtype == kString ? sizeof(std::string) : dtype_size(dtype), &bytes);
  if (const int given = from.string_val_size(); fits && dtype == kString && given > 0 && count > given) {
    fits = !__builtin_mul_overflow(static_cast<uint64_t>(count - given), from.string_val(given - 1).size(), &copies);
  }
  if (!fits || bytes > kMostBytes || copies > kMostBytes) {
    throw InvalidArgumentError(fmt::format("a tensor proto of {} {}: its values would take more than {} bytes",
                                           dtype_name(dtype), shape.to_string(), kMostBytes));
  }
}

}  // namespace

proto::TensorShapeProto to_proto(const Shape& shape) {
  proto::TensorShapeProto result;
  if (!shape.has_rank()) result.set_unknown_rank(true);
  for (int64_t dim : shape.dims()) result.add_dim()->set_size(dim);
  return result;
}

Shape from_proto(const proto::TensorShapeProto& shape) {
  constexpr int kMostDimensions = 254;  // TensorFlow's limit
  if (shape.unknown_rank()) return Shape::unknown_rank();
  if (shape.dim_size() > kMostDimensions) {
    throw InvalidArgumentError(fmt::format("a shape has {} dimensions, more than TensorFlow allows", shape.dim_size()));
  }
  std::vector<int64_t> dims;
  for (const auto& dim : shape.dim()) {
    if (dim.size() < -1) throw InvalidArgumentError(fmt::format("a shape has a dimension of {}", dim.size()));
    dims.push_back(dim.size());
  }
  return Shape(std::move(dims));
}

proto::TensorProto to_proto(const Tensor& tensor) {
  proto::TensorProto result;
  result.set_dtype(static_cast<proto::DataType>(tensor.dtype()));
  *result.mutable_tensor_shape() = to_proto(tensor.shape());
  if (tensor.dtype() == kString) {
    for (const std::string& text : tensor.flat<std::string>()) result.add_string_val(text);
  } else {
    result.set_tensor_content(tensor.data(), tensor.size_bytes());
  }
  return result;
}

Tensor from_proto(const proto::TensorProto& from) {
  if (!is_known_dtype(from.dtype())) {
    const std::string& name = proto::DataType_Name(from.dtype());
    throw InvalidArgumentError(
        fmt::format("a tensor proto has unsupported {}",
                    name.empty() ? fmt::format("dtype {}", static_cast<int>(from.dtype())) : name));
  }
  const DType dtype = static_cast<DType>(from.dtype());
  const Shape shape = from_proto(from.tensor_shape());
  const bool has_content = !from.tensor_content().empty();
  if (has_content && dtype != kString) {
    check_content(from, dtype, shape);
  } else {
    check_expansion(from, dtype, shape);
    if (has_content) check_string_content(from, shape);
  }
  Tensor tensor(dtype, shape);
  if (!has_content) {
    fill_from_fields(from, tensor);
  } else if (dtype == kString) {
    fill_from_content(from.tensor_content(), tensor);
  } else {
    std::memcpy(tensor.mutable_data(), from.tensor_content().data(), from.tensor_content().size());
  }
  return tensor;
}

}  // namespace longhaul
