#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/checkpoint/torch_archive/pickle.h"
#include "longhaul/tensor/dtype.h"
#include "longhaul/tensor/shape.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// Where the elements of a tensor are: in a storage, which other tensors may share.
struct TorchPlace {
  std::string storage;  // its key
  uint64_t storage_bytes = 0;
  int64_t offset = 0;  // of the first element, in elements, as the strides
  std::vector<int64_t> strides;
};

// A tensor, a number or a text of an archive.
struct TorchEntry {
  // The keys that lead to it, joined by '/'; the attributes of a module by '.': "0.weight", "optimizer/state/0/step",
  // "epoch".
  std::string name{};
  std::string dtype_name{};  // PyTorch's: "float32"
  DType dtype = kInvalid;    // kInvalid: the library lacks it
  Shape shape{};
  std::optional<TorchPlace> place{};  // nullopt: it is `value`
  Tensor value{};                     // a scalar

  uint64_t bytes() const;  // of the elements; 0: the library lacks the dtype
};

// All tensors, numbers and texts of a pickle, in its order; of a module's object, only tensors. None, dtypes and empty
// containers are no entries.
//
// DataLossError: a tensor reaches beyond its storage, or the pickle says nothing that makes sense.
// UnimplementedError: what it says is not supported; the message has the name. InvalidArgumentError: two have the same
// name.
std::vector<TorchEntry> torch_entries(Pickle& pickle);

}  // namespace longhaul
