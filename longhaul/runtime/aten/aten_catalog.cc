#include "longhaul/runtime/aten/aten_catalog.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <set>

#include "longhaul/runtime/aten/aten_call.h"
#include "longhaul/runtime/aten/aten_tensor.h"

namespace longhaul {
namespace {

using Source = AtenArgument::Source;

// Operators whose sizes argument may contradict the sizes put in for unknown dimensions, though the call is right.
const std::set<std::string>& size_takers() {
  static const auto* names = new std::set<std::string>{
      "aten::view", "aten::reshape", "aten::expand", "aten::_unsafe_view", "aten::unflatten.int", "aten::sum_to_size"};
  return *names;
}

class Prober {
 public:
  Prober(const OperationSpec& spec, const AtenCall& call) : spec_(spec), call_(call) {}

  // InvalidArgumentError: libtorch refuses the call.
  std::vector<OpInfo::Result> infer() const {
    if (!ranks_known()) return unknown_results();
    try {
      return attempt_twice(at::kMeta, 1009 * divisor(), 2003 * divisor());
    } catch (const c10::Error& error) {
      if (small_enough()) return infer_on_small_tensors();
      if (dynamic_cast<const c10::NotImplementedError*>(&error) != nullptr || anything_unknown())
        return unknown_results();
      refuse(error);
    }
  }

 private:
  using Results = std::vector<OpInfo::Result>;

  Results infer_on_small_tensors() const {
    try {
      return attempt_twice(at::kCPU, 13, 17);
    } catch (const c10::NotImplementedError&) {
      return unknown_results();
    } catch (const c10::Error& error) {
      if (!anything_unknown()) refuse(error);
      if (size_takers().contains(spec_.type)) return unknown_results();
      return infer_ranks(error);
    }
  }

  // Unknown sizes that are in truth different from each other may still broadcast: with ones they do. Only ranks are
  // learned so.
  Results infer_ranks(const c10::Error& refusal) const {
    try {
      Results results = attempt(at::kCPU, 1);
      for (OpInfo::Result& result : results) result.shape = Shape(std::vector<int64_t>(result.shape.dims().size(), -1));
      return results;
    } catch (const c10::Error&) {
      refuse(refusal);
    }
  }

  [[noreturn]] void refuse(const c10::Error& error) const {
    std::string given;
    for (const Output& input : spec_.inputs) {
      given += fmt::format("{}{} {}{}", given.empty() ? "" : ", ", input.name(), dtype_name(input.dtype()),
                           input.shape().to_string());
    }
    throw InvalidArgumentError(fmt::format("{}; the signature is {}; the inputs are ({})",
                                           aten_error_text(spec_.name, spec_.type, error), toString(call_.op.schema()),
                                           given));
  }

  // What an unknown size should be a multiple of, so that a tensor of it divides into the sizes that a reshape names.
  int64_t divisor() const {
    constexpr int64_t kMost = int64_t{1} << 30;
    int64_t product = 1;
    if (!size_takers().contains(spec_.type)) return product;
    for (const AtenArgument& argument : call_.arguments) {
      if (!argument.constant.isIntList()) continue;
      for (int64_t size : argument.constant.toIntVector()) {
        if (size > 0 && product <= kMost / size) product *= size;
      }
    }
    return product;
  }

  bool ranks_known() const {
    for (const AtenArgument& argument : call_.arguments) {
      for (int i = argument.first_input; i < argument.first_input + argument.count; ++i) {
        if (argument.source == Source::kInts ? !static_ints(input(i)) : !input(i).shape().has_rank()) return false;
      }
    }
    return true;
  }

  bool small_enough() const {
    constexpr int64_t kMostElements = int64_t{1} << 26;
    for (const Output& input : spec_.inputs) {
      int64_t count = 1;
      for (int64_t dim : input.shape().dims()) {
        if (__builtin_mul_overflow(count, dim < 0 ? 17 : dim, &count)) return false;
      }
      if (count > kMostElements) return false;
    }
    return true;
  }

  bool anything_unknown() const {
    for (const Output& input : spec_.inputs) {
      if (!input.shape().fully_defined()) return true;
    }
    for (const AtenArgument& argument : call_.arguments) {
      if (argument.source != Source::kInts) continue;
      const auto sizes = static_ints(input(argument.first_input));
      for (int64_t size : *sizes) {
        if (size < 0) return true;
      }
    }
    return false;
  }

  Results attempt_twice(at::Device device, int64_t first_size, int64_t second_size) const {
    const Results first = attempt(device, first_size);
    return anything_unknown() ? merge(first, attempt(device, second_size)) : first;
  }

  // What two attempts disagree about is unknown.
  static Results merge(const Results& first, const Results& second) {
    Results merged = first;
    for (size_t i = 0; i < merged.size(); ++i) {
      if (i >= second.size() || first[i].shape.rank() != second[i].shape.rank()) {
        merged[i].shape = Shape::unknown_rank();
        continue;
      }
      std::vector<int64_t> dims = first[i].shape.dims();
      for (size_t d = 0; d < dims.size(); ++d) {
        if (dims[d] != second[i].shape.dims()[d]) dims[d] = -1;
      }
      merged[i].shape = Shape(std::move(dims));
    }
    return merged;
  }

  const Output& input(int i) const { return spec_.inputs[static_cast<size_t>(i)]; }

  Results attempt(at::Device device, int64_t unknown) const {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    torch::jit::Stack stack;
    for (const AtenArgument& argument : call_.arguments) stack.push_back(make_argument(argument, device, unknown));
    call(&stack);
    Results results;
    for (const c10::IValue& value : stack) append_result(value, &results);
    return results;
  }

  // libtorch reports a size that cannot be inferred by a plain runtime_error.
  void call(torch::jit::Stack* stack) const {
    try {
      call_.op.callBoxed(stack);
    } catch (const c10::Error&) {
      throw;
    } catch (const std::runtime_error& error) {
      throw c10::Error({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, error.what());
    }
  }

  at::Tensor make_tensor(const Output& like, at::Device device, int64_t unknown) const {
    std::vector<int64_t> sizes = like.shape().dims();
    for (int64_t& size : sizes) size = size < 0 ? unknown : size;
    const auto options = at::TensorOptions().dtype(*find_scalar_type(like.dtype())).device(device);
    if (device.is_meta()) return at::empty(sizes, options);
    return is_integer(like.dtype()) ? at::zeros(sizes, options) : at::ones(sizes, options);
  }

  c10::IValue make_argument(const AtenArgument& argument, at::Device device, int64_t unknown) const {
    switch (argument.source) {
      case Source::kConstant: return argument.constant;
      case Source::kTensor: return make_tensor(input(argument.first_input), device, unknown);
      case Source::kTensorList: return make_list<at::Tensor>(argument, device, unknown);
      case Source::kOptionalTensorList: return make_list<c10::optional<at::Tensor>>(argument, device, unknown);
      case Source::kInts: return make_ints(argument, unknown);
      case Source::kInt:
      case Source::kScalar: return int64_t{1};
      case Source::kGenerator: return c10::IValue();
    }
    return c10::IValue();
  }

  template <typename Element>
  c10::IValue make_list(const AtenArgument& argument, at::Device device, int64_t unknown) const {
    c10::List<Element> list;
    for (int i = 0; i < argument.count; ++i)
      list.push_back(make_tensor(input(argument.first_input + i), device, unknown));
    return list;
  }

  c10::IValue make_ints(const AtenArgument& argument, int64_t unknown) const {
    std::vector<int64_t> sizes = *static_ints(input(argument.first_input));
    for (int64_t& size : sizes) size = size < 0 ? unknown : size;
    return sizes;
  }

  void append_result(const c10::IValue& value, Results* results) const {
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      results->push_back({tensor.defined() ? dtype_of(tensor.scalar_type()) : kFloat,
                          tensor.defined() ? shape_of(tensor) : Shape::unknown_rank()});
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector())
        results->push_back({dtype_of(tensor.scalar_type()), shape_of(tensor)});
    } else {
      throw InvalidArgumentError(
          fmt::format("{}: the operator returns a value that is not a tensor; the signature is {}", spec_.name,
                      toString(call_.op.schema())));
    }
  }

  // The dtype is guessed from the attr dtype, else from the first tensor: libtorch was not asked.
  Results unknown_results() const {
    DType dtype = kFloat;
    if (!spec_.inputs.empty()) dtype = spec_.inputs[0].dtype();
    if (const auto it = spec_.attrs.find("dtype");
        it != spec_.attrs.end() && std::holds_alternative<DType>(it->second)) {
      dtype = std::get<DType>(it->second);
    }
    Results results;
    for (const c10::Argument& result : call_.op.schema().returns()) {
      if (result.type()->kind() != c10::TypeKind::TensorType) {
        throw InvalidArgumentError(
            fmt::format("{}: the number of tensors that it returns depends on shapes that are not known yet; the "
                        "signature is {}",
                        spec_.name, toString(call_.op.schema())));
      }
      results.push_back({dtype, Shape::unknown_rank()});
    }
    return results;
  }

  const OperationSpec& spec_;
  const AtenCall& call_;
};

class AtenCatalog : public OpCatalog {
 public:
  std::optional<OpInfo> resolve(const OperationSpec& spec) const override {
    const auto call = bind_aten_call(spec);
    if (!call) return std::nullopt;
    return OpInfo{Prober(spec, *call).infer(),
                  call->random ? static_cast<uint32_t>(kRandom) : static_cast<uint32_t>(kPure)};
  }
};

}  // namespace

const OpCatalog& aten_op_catalog() {
  static const AtenCatalog* catalog = new AtenCatalog;
  return *catalog;
}

}  // namespace longhaul
