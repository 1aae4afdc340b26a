#include "longhaul/runtime/aten/aten_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/runtime/aten/aten_tensor.h"

namespace longhaul {
namespace {

using Source = AtenArgument::Source;
using c10::TypeKind;

std::optional<c10::OperatorHandle> find_operator(const std::string& type) {
  if (!type.starts_with("aten::")) return std::nullopt;
  const size_t dot = type.find('.');
  const c10::OperatorName name(type.substr(0, dot), dot == std::string::npos ? "" : type.substr(dot + 1));
  const auto handle = c10::Dispatcher::singleton().findSchema(name);
  return handle ? std::optional(*handle) : std::nullopt;
}

c10::TypePtr without_optional(const c10::TypePtr& type) {
  if (const auto optional = type->cast<c10::OptionalType>()) return optional->getElementType();
  return type;
}

TypeKind element_kind(const c10::TypePtr& list) {
  return list->expect<c10::ListType>()->getElementType()->kind();
}

class Binder {
 public:
  Binder(const OperationSpec& spec, const c10::OperatorHandle& op)
      : spec_(spec), schema_(op.schema()), call_{op, {}, false} {}

  AtenCall bind() {
    refuse_writers();
    refuse_files();
    name_edges();
    for (const c10::Argument& argument : schema_.arguments()) bind_argument(argument);
    if (taken_ != spec_.inputs.size())
      refuse(fmt::format("{} inputs were given, but the operator takes {}", spec_.inputs.size(), taken_));
    for (const auto& [name, value] : spec_.attrs) {
      if (name != "edges" && !name.starts_with('_') && !schema_.argumentIndexWithName(name))
        refuse("the operator has no argument '" + name + "'");
    }
    return std::move(call_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    std::string given;
    for (const Output& input : spec_.inputs) {
      given += fmt::format("{}{} {}{}", given.empty() ? "" : ", ", input.name(), dtype_name(input.dtype()),
                           input.shape().to_string());
    }
    throw InvalidArgumentError(
        fmt::format("{}: {}; the signature is {}; the inputs are ({})", spec_.name, why, toString(schema_), given));
  }

  // Operators that write into their arguments would change what others hold: variables, constants, the caller's
  // tensors.
  void refuse_writers() const {
    for (const c10::Argument& argument : schema_.arguments()) {
      if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) {
        refuse("the operator writes into its argument '" + argument.name() +
               "'; use the variant that returns a new tensor");
      }
    }
  }

  // aten::from_file maps a file, or makes one, past the task's files (TaskResources::files()), and already when its
  // shape is asked for.
  void refuse_files() const {
    if (schema_.argumentIndexWithName("filename"))
      refuse("the operator opens a file by itself; use ops::read_file and ops::decode_raw");
  }

  // The argument that each input is for.
  void name_edges() {
    if (const auto it = spec_.attrs.find("edges"); it != spec_.attrs.end()) {
      const auto* edges = std::get_if<std::vector<std::string>>(&it->second);
      if (edges == nullptr || edges->size() != spec_.inputs.size())
        refuse("attr 'edges' must name an argument for each input");
      edges_ = *edges;
      return;
    }
    for (const c10::Argument& argument : schema_.arguments()) {
      const bool tensor = without_optional(argument.type())->kind() == TypeKind::TensorType;
      if (tensor && edges_.size() < spec_.inputs.size()) edges_.push_back(argument.name());
    }
  }

  void bind_argument(const c10::Argument& argument) {
    const c10::TypePtr type = without_optional(argument.type());
    const auto first = std::find(edges_.begin(), edges_.end(), argument.name());
    if (type->kind() == TypeKind::GeneratorType) {
      call_.random = true;
      call_.arguments.push_back({Source::kGenerator, {}, 0, 0});
    } else if (first != edges_.end()) {
      const auto count =
          std::find_if(first, edges_.end(), [&](const std::string& name) { return name != *first; }) - first;
      bind_input(argument, type, static_cast<int>(first - edges_.begin()), static_cast<int>(count));
    } else {
      call_.arguments.push_back({Source::kConstant, constant(argument, type), 0, 0});
    }
  }

  Source source_of(const c10::Argument& argument, const c10::TypePtr& type) const {
    switch (type->kind()) {
      case TypeKind::TensorType: return Source::kTensor;
      case TypeKind::IntType: return Source::kInt;
      case TypeKind::NumberType:
      case TypeKind::FloatType:
      case TypeKind::BoolType: return Source::kScalar;
      case TypeKind::ListType:
        switch (element_kind(type)) {
          case TypeKind::TensorType: return Source::kTensorList;
          case TypeKind::OptionalType: return Source::kOptionalTensorList;
          case TypeKind::IntType: return Source::kInts;
          default: break;
        }
        [[fallthrough]];
      default: refuse("argument '" + argument.name() + "' must be a constant, not a tensor of the graph");
    }
  }

  void bind_input(const c10::Argument& argument, const c10::TypePtr& type, int first, int count) {
    const Source source = source_of(argument, type);
    const bool list = source == Source::kTensorList || source == Source::kOptionalTensorList;
    if (!list && count != 1) refuse(fmt::format("argument '{}' takes one input, not {}", argument.name(), count));
    for (int i = first; i < first + count; ++i) check_input(argument, source, spec_.inputs[static_cast<size_t>(i)]);
    call_.arguments.push_back({source, {}, first, count});
    taken_ += static_cast<size_t>(count);
  }

  void check_input(const c10::Argument& argument, Source source, const Output& input) const {
    if (!find_scalar_type(input.dtype())) {
      refuse(fmt::format("argument '{}' cannot take the {} tensor {}: libtorch has no such dtype", argument.name(),
                         dtype_name(input.dtype()), input.name()));
    }
    if (source == Source::kInts && input.dtype() != kInt64) {
      refuse(fmt::format("argument '{}' takes an int64 tensor, but {} is {}", argument.name(), input.name(),
                         dtype_name(input.dtype())));
    }
  }

  c10::IValue constant(const c10::Argument& argument, const c10::TypePtr& type) const {
    const auto it = spec_.attrs.find(argument.name());
    if (it != spec_.attrs.end()) return from_attr(argument, type, it->second);
    if (argument.default_value()) return *argument.default_value();
    if (argument.type()->kind() == TypeKind::OptionalType) return c10::IValue();
    refuse("argument '" + argument.name() + "' is missing");
  }

  c10::IValue from_attr(const c10::Argument& argument, const c10::TypePtr& type, const Attr& attr) const {
    const auto* number = std::get_if<int64_t>(&attr);
    const auto* real = std::get_if<double>(&attr);
    const auto* boolean = std::get_if<bool>(&attr);
    switch (type->kind()) {
      case TypeKind::IntType:
        if (number != nullptr) return *number;
        if (const DType* dtype = std::get_if<DType>(&attr)) return from_dtype(argument, *dtype);
        break;
      case TypeKind::FloatType:
        if (real != nullptr) return *real;
        if (number != nullptr) return static_cast<double>(*number);
        break;
      case TypeKind::BoolType:
        if (boolean != nullptr) return *boolean;
        break;
      case TypeKind::NumberType:
        if (number != nullptr) return *number;
        if (real != nullptr) return *real;
        if (boolean != nullptr) return *boolean;
        break;
      case TypeKind::StringType:
        if (const auto* text = std::get_if<std::string>(&attr)) return *text;
        break;
      case TypeKind::ListType: return list_from_attr(argument, type, attr);
      default: break;
    }
    refuse("argument '" + argument.name() + "' does not accept a constant of the given type");
  }

  c10::IValue from_dtype(const c10::Argument& argument, DType dtype) const {
    const auto scalar_type = find_scalar_type(dtype);
    if (!scalar_type)
      refuse(fmt::format("argument '{}': libtorch has no dtype {}", argument.name(), dtype_name(dtype)));
    return static_cast<int64_t>(*scalar_type);
  }

  c10::IValue list_from_attr(const c10::Argument& argument, const c10::TypePtr& type, const Attr& attr) const {
    const TypeKind kind = element_kind(type);
    if (const auto* ints = std::get_if<std::vector<int64_t>>(&attr)) {
      if (kind == TypeKind::IntType) return *ints;
      if (kind == TypeKind::FloatType) return std::vector<double>(ints->begin(), ints->end());
      if (kind == TypeKind::BoolType) return bools(*ints);
    }
    if (const auto* reals = std::get_if<std::vector<double>>(&attr); reals != nullptr && kind == TypeKind::FloatType)
      return *reals;
    if (const auto* one = std::get_if<int64_t>(&attr); one != nullptr && kind == TypeKind::IntType && argument.N()) {
      return std::vector<int64_t>(static_cast<size_t>(*argument.N()), *one);
    }
    refuse("argument '" + argument.name() + "' does not accept a list of the given type");
  }

  static c10::IValue bools(const std::vector<int64_t>& values) {
    c10::List<bool> list;
    for (int64_t value : values) list.push_back(value != 0);
    return list;
  }

  const OperationSpec& spec_;
  const c10::FunctionSchema& schema_;
  AtenCall call_;
  std::vector<std::string> edges_;
  size_t taken_ = 0;
};

}  // namespace

std::optional<AtenCall> bind_aten_call(const OperationSpec& spec) {
  const auto op = find_operator(spec.type);
  if (!op) return std::nullopt;
  return Binder(spec, *op).bind();
}

bool has_aten_kernel(const std::string& type, c10::Device device) {
  const auto op = find_operator(type);
  return op && op->hasComputedKernelForDispatchKey(c10::computeDispatchKey(c10::nullopt, c10::nullopt, device));
}

void set_device(AtenCall& call, c10::Device device) {
  const auto& arguments = call.op.schema().arguments();
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    AtenArgument& argument = call.arguments[i];
    const bool is_open = argument.source == Source::kConstant && argument.constant.isNone();
    if (is_open && arguments[i].name() == "device") argument.constant = device;
  }
}

std::vector<bool> inputs_on_host(const AtenCall& call, size_t count) {
  std::vector<bool> on_host(count, false);
  for (const AtenArgument& argument : call.arguments) {
    const bool is_number =
        argument.source == Source::kInts || argument.source == Source::kInt || argument.source == Source::kScalar;
    if (is_number) on_host[static_cast<size_t>(argument.first_input)] = true;
  }
  return on_host;
}

std::optional<std::vector<int64_t>> static_ints(const Output& output) {
  const Operation op = output.op();
  if (op.type() == "Const") {
    const auto values = op.attr<Tensor>("value").flat<int64_t>();
    return std::vector<int64_t>(values.begin(), values.end());
  }
  if (op.type() == "Shape" && op.inputs()[0].shape().has_rank()) return op.inputs()[0].shape().dims();
  return std::nullopt;
}

std::string aten_error_text(const std::string& name, const std::string& type, const c10::Error& error) {
  return fmt::format("{} ({}): {}", name, type, error.what_without_backtrace());
}

}  // namespace longhaul
