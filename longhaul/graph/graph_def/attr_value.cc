#include "longhaul/graph/graph_def/attr_value.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "longhaul/base/excerpt.h"
#include "longhaul/graph/graph_def/graph_def.h"

namespace longhaul {
namespace {

template <typename T>
void set_list(proto::AttrValue::ListValue* list, const std::vector<T>& values) {
  for (const T& value : values) {
    if constexpr (std::is_same_v<T, int64_t>) {
      list->add_i(value);
    } else if constexpr (std::is_same_v<T, double>) {
      list->add_f(static_cast<float>(value));
    } else if constexpr (std::is_same_v<T, std::string>) {
      list->add_s(value);
    } else if constexpr (std::is_same_v<T, DType>) {
      list->add_type(static_cast<proto::DataType>(value));
    } else {
      *list->add_shape() = to_proto(value);
    }
  }
}

struct AttrToProto {
  proto::AttrValue* out;
  void operator()(int64_t value) const { out->set_i(value); }
  void operator()(double value) const { out->set_f(static_cast<float>(value)); }
  void operator()(bool value) const { out->set_b(value); }
  void operator()(const std::string& value) const { out->set_s(value); }
  void operator()(DType value) const { out->set_type(static_cast<proto::DataType>(value)); }
  void operator()(const Shape& value) const { *out->mutable_shape() = to_proto(value); }
  void operator()(const Tensor& value) const { *out->mutable_tensor() = to_proto(value); }
  void operator()(const std::shared_ptr<HostFunction>&) const { out->set_placeholder("a function of the program"); }
  template <typename T>
  void operator()(const std::vector<T>& values) const {
    set_list(out->mutable_list(), values);
  }
};

double shortest_decimal(float value) {
  if (!std::isfinite(value)) return static_cast<double>(value);
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  double decimal = 0;
  std::from_chars(digits, end, decimal);
  return decimal;
}

DType dtype_from_proto(int number) {
  if (!is_known_dtype(number) && number != kResource) {
    const std::string& name = proto::DataType_Name(static_cast<proto::DataType>(number));
    throw UnimplementedError(
        fmt::format("the dtype {} is not supported", name.empty() ? std::to_string(number) : name));
  }
  return static_cast<DType>(number);
}

Attr empty_list(std::string_view name) {
  if (name.ends_with("types") || name.ends_with("TYPE") || name.starts_with('T')) return std::vector<DType>();
  if (name.ends_with("shapes")) return std::vector<Shape>();
  if (name.ends_with("keys") || name.ends_with("names") || name == "edges" || name == "_class") {
    return std::vector<std::string>();
  }
  return std::vector<int64_t>();
}

template <typename T, typename Values, typename Convert>
Attr list_of(const Values& values, Convert convert) {
  std::vector<T> list;
  for (const auto& value : values) list.push_back(convert(value));
  return list;
}

Attr list_from_proto(std::string_view name, const proto::AttrValue::ListValue& list) {
  const int kinds = (list.s_size() > 0) + (list.i_size() > 0) + (list.f_size() > 0) + (list.b_size() > 0) +
                    (list.type_size() > 0) + (list.shape_size() > 0) + (list.tensor_size() > 0) +
                    (list.func_size() > 0);
  if (kinds > 1) throw InvalidArgumentError("the list has values of different kinds");
  if (list.s_size() > 0) return list_of<std::string>(list.s(), [](const std::string& text) { return text; });
  if (list.i_size() > 0) return list_of<int64_t>(list.i(), [](int64_t number) { return number; });
  if (list.f_size() > 0) return list_of<double>(list.f(), shortest_decimal);
  if (list.type_size() > 0) return list_of<DType>(list.type(), dtype_from_proto);
  if (list.shape_size() > 0) {
    return list_of<Shape>(list.shape(), [](const proto::TensorShapeProto& shape) { return from_proto(shape); });
  }
  if (list.b_size() > 0) throw UnimplementedError("lists of bools are not supported");
  if (list.tensor_size() > 0) throw UnimplementedError("lists of tensors are not supported");
  if (list.func_size() > 0) throw UnimplementedError("lists of functions are not supported");
  return empty_list(name);
}

}  // namespace

proto::AttrValue attr_to_proto(const Attr& attr) {
  proto::AttrValue value;
  std::visit(AttrToProto{&value}, attr);
  return value;
}

Attr attr_from_proto(std::string_view name, const proto::AttrValue& value) {
  switch (value.value_case()) {
    case proto::AttrValue::kI: return value.i();
    case proto::AttrValue::kF: return shortest_decimal(value.f());
    case proto::AttrValue::kB: return value.b();
    case proto::AttrValue::kS: return value.s();
    case proto::AttrValue::kType: return dtype_from_proto(value.type());
    case proto::AttrValue::kShape: return from_proto(value.shape());
    case proto::AttrValue::kTensor: return from_proto(value.tensor());
    case proto::AttrValue::kList: return list_from_proto(name, value.list());
    case proto::AttrValue::kFunc:
      throw UnimplementedError("functions are not supported: " + excerpt(value.func().name()));
    case proto::AttrValue::kPlaceholder:
      throw UnimplementedError("placeholders are not supported: " + excerpt(value.placeholder()));
    case proto::AttrValue::VALUE_NOT_SET: break;
  }
  throw InvalidArgumentError("it has no value");
}

}  // namespace longhaul
