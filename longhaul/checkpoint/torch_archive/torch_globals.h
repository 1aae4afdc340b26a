#pragma once

#include <string_view>

#include "longhaul/tensor/dtype.h"

// The classes and functions of PyTorch that a state dict names: docs/formats/torch_archive.md. A module and a name,
// with a '\n' between them, as in a pickle.
namespace longhaul {

inline constexpr std::string_view kOrderedDict = "collections\nOrderedDict";
inline constexpr std::string_view kRebuildTensor = "torch._utils\n_rebuild_tensor_v2";
inline constexpr std::string_view kRebuildTensorOfDType = "torch._utils\n_rebuild_tensor_v3";
inline constexpr std::string_view kRebuildParameter = "torch._utils\n_rebuild_parameter";
inline constexpr std::string_view kRebuildParameterWithState = "torch._utils\n_rebuild_parameter_with_state";
inline constexpr std::string_view kUntypedStorage = "torch.storage\nUntypedStorage";

// Whether a state dict may have this global.
bool is_known_global(std::string_view global);

// Functions whose result is their first argument, as far as a state dict is concerned: torch.Size, and the lists of
// TorchScript.
bool is_wrapper(std::string_view global);

// A class of a TorchScript archive ("__torch__\nModule"): its state has the tensors of a module.
bool is_script_class(std::string_view global);

// A dtype of PyTorch's by the global that names it: "torch\nFloatStorage" or "torch\nuint16".
struct TorchDType {
  std::string_view storage;  // the class of its storages; empty: it has none of its own, but kUntypedStorage
  std::string_view global;   // its own
  DType dtype;               // kInvalid: the library lacks it
};

// nullptr: there is none.
const TorchDType* torch_dtype_of_storage(std::string_view global);
const TorchDType* torch_dtype_of_global(std::string_view global);
const TorchDType* torch_dtype(DType dtype);  // nullptr: PyTorch lacks it (strings)

}  // namespace longhaul
