#include "longhaul/checkpoint/torch_archive/torch_globals.h"

#include <algorithm>
#include <array>

namespace longhaul {
namespace {

constexpr TorchDType kDTypes[] = {
    {"torch\nFloatStorage", "torch\nfloat32", kFloat},
    {"torch\nDoubleStorage", "torch\nfloat64", kDouble},
    {"torch\nHalfStorage", "torch\nfloat16", kHalf},
    {"torch\nBFloat16Storage", "torch\nbfloat16", kBFloat16},
    {"torch\nLongStorage", "torch\nint64", kInt64},
    {"torch\nIntStorage", "torch\nint32", kInt32},
    {"torch\nShortStorage", "torch\nint16", kInt16},
    {"torch\nCharStorage", "torch\nint8", kInt8},
    {"torch\nByteStorage", "torch\nuint8", kUInt8},
    {"torch\nBoolStorage", "torch\nbool", kBool},
    {"torch\nComplexFloatStorage", "torch\ncomplex64", kComplex64},
    {"torch\nComplexDoubleStorage", "torch\ncomplex128", kComplex128},
    {"", "torch\nuint16", kUInt16},
    {"", "torch\nuint32", kUInt32},
    {"", "torch\nuint64", kUInt64},
    {"", "torch\ncomplex32", kInvalid},
    {"", "torch\nfloat8_e4m3fn", kInvalid},
    {"", "torch\nfloat8_e4m3fnuz", kInvalid},
    {"", "torch\nfloat8_e5m2", kInvalid},
    {"", "torch\nfloat8_e5m2fnuz", kInvalid},
    {"", "torch\nfloat8_e8m0fnu", kInvalid},
};

template <class Is>
const TorchDType* find(const Is& is) {
  const auto found = std::find_if(std::begin(kDTypes), std::end(kDTypes), is);
  return found == std::end(kDTypes) ? nullptr : found;
}

}  // namespace

bool is_wrapper(std::string_view global) {
  static constexpr std::array<std::string_view, 7> kWrappers = {
      "torch\nSize",
      "torch\ndevice",
      "torch.jit._pickle\nbuild_boollist",
      "torch.jit._pickle\nbuild_doublelist",
      "torch.jit._pickle\nbuild_intlist",
      "torch.jit._pickle\nbuild_tensorlist",
      "torch.jit._pickle\nrestore_type_tag",
  };
  return std::find(kWrappers.begin(), kWrappers.end(), global) != kWrappers.end();
}

bool is_script_class(std::string_view global) {
  return global.starts_with("__torch__\n") || global.starts_with("__torch__.");
}

const TorchDType* torch_dtype_of_storage(std::string_view global) {
  return find([&](const TorchDType& one) { return !one.storage.empty() && one.storage == global; });
}

const TorchDType* torch_dtype_of_global(std::string_view global) {
  return find([&](const TorchDType& one) { return one.global == global; });
}

const TorchDType* torch_dtype(DType dtype) {
  return find([&](const TorchDType& one) { return one.dtype == dtype && dtype != kInvalid; });
}

bool is_known_global(std::string_view global) {
  static constexpr std::array<std::string_view, 6> kFunctions = {
      kOrderedDict,   kRebuildTensor, kRebuildTensorOfDType, kRebuildParameter, kRebuildParameterWithState,
      kUntypedStorage};
  return std::find(kFunctions.begin(), kFunctions.end(), global) != kFunctions.end() || is_wrapper(global) ||
         is_script_class(global) || torch_dtype_of_storage(global) != nullptr ||
         torch_dtype_of_global(global) != nullptr;
}

}  // namespace longhaul
