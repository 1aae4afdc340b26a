#include "longhaul/checkpoint/torch_archive/torch_archive_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/checkpoint/torch_archive/pickle.h"
#include "longhaul/checkpoint/torch_archive/pickle_writer.h"
#include "longhaul/checkpoint/torch_archive/script_module.h"
#include "longhaul/checkpoint/torch_archive/torch_globals.h"

namespace longhaul {
namespace {

constexpr char kVersion[] = "3\n";          // of the archive, for readers since PyTorch 1.6
constexpr uint64_t kBytesPerTensor = 1024;  // besides its elements and its name: headers, padding, and its pickle

std::vector<int64_t> row_major_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.dims().size());
  uint64_t stride = 1;  // of a shape without elements it may not fit, and does not matter
  for (size_t i = strides.size(); i-- > 0;) {
    strides[i] = static_cast<int64_t>(stride & INT64_MAX);
    stride *= static_cast<uint64_t>(std::max<int64_t>(shape.dims()[i], 1));
  }
  return strides;
}

// A tensor whose storage is the entry data/INDEX.
void put_tensor(PickleWriter& pickle, const TorchTensor& tensor, size_t index) {
  const TorchDType& dtype = *torch_dtype(tensor.dtype);
  const bool has_storage = !dtype.storage.empty();
  pickle.put_global(has_storage ? kRebuildTensor : kRebuildTensorOfDType);
  pickle.put(PickleOpcode::kMark);

  pickle.put(PickleOpcode::kMark);
  pickle.put_text("storage");
  pickle.put_global(has_storage ? dtype.storage : kUntypedStorage);
  pickle.put_text(std::to_string(index));
  pickle.put_text("cpu");
  pickle.put_number(has_storage ? tensor.shape.num_elements() : static_cast<int64_t>(tensor.bytes()));
  pickle.put(PickleOpcode::kTuple);
  pickle.put(PickleOpcode::kBinPersId);

  pickle.put_number(0);  // the first element
  pickle.put_tuple(tensor.shape.dims());
  pickle.put_tuple(row_major_strides(tensor.shape));
  pickle.put(PickleOpcode::kNewFalse);  // requires_grad
  pickle.put_empty_ordered_dict();      // hooks
  if (!has_storage) pickle.put_global(dtype.global);
  pickle.put(PickleOpcode::kTuple);
  pickle.put(PickleOpcode::kReduce);
}

std::string pickled_dict(std::span<const TorchTensor> tensors) {
  PickleWriter pickle;
  pickle.put_empty_ordered_dict();
  pickle.put(PickleOpcode::kMark);
  for (size_t i = 0; i < tensors.size(); ++i) {
    pickle.put_text(tensors[i].name);
    put_tensor(pickle, tensors[i], i);
  }
  pickle.put(PickleOpcode::kSetItems);
  return pickle.take();
}

void put_module(PickleWriter& pickle, const ScriptModules& modules, size_t module,
                std::span<const TorchTensor> tensors) {
  pickle.put_global("__torch__\n" + ScriptModules::class_name(module));
  pickle.put(PickleOpcode::kEmptyTuple);
  pickle.put(PickleOpcode::kNewObject);
  pickle.put(PickleOpcode::kEmptyDict);
  pickle.put(PickleOpcode::kMark);
  for (const auto& [name, index] : modules.modules()[module].tensors) {
    pickle.put_text(name);
    put_tensor(pickle, tensors[index], index);
  }
  for (const auto& [name, below] : modules.modules()[module].modules) {
    pickle.put_text(name);
    put_module(pickle, modules, below, tensors);
  }
  pickle.put(PickleOpcode::kSetItems);
  pickle.put(PickleOpcode::kBuild);
}

std::string pickled_modules(const ScriptModules& modules, std::span<const TorchTensor> tensors) {
  PickleWriter pickle;
  put_module(pickle, modules, 0, tensors);
  return pickle.take();
}

std::string pickled_no_constants() {
  PickleWriter pickle;
  pickle.put(PickleOpcode::kEmptyTuple);
  return pickle.take();
}

void check_tensors(TorchArchiveKind kind, std::span<const TorchTensor> tensors) {
  for (const TorchTensor& tensor : tensors) {
    if (!is_utf8(tensor.name)) throw InvalidArgumentError(fmt::format("{} is not UTF-8", excerpt(tensor.name)));
    if (torch_archive_has(kind, tensor.dtype)) continue;
    throw UnimplementedError(fmt::format("tensor {} has dtype {}, which such archives do not have",
                                         excerpt(tensor.name), dtype_name(tensor.dtype)));
  }
}

}  // namespace

TorchArchiveWriter::TorchArchiveWriter(WritableFile& file, std::string root, TorchArchiveKind kind,
                                       std::span<const TorchTensor> tensors)
    : zip_(file), root_(std::move(root)) {
  check_tensors(kind, tensors);
  if (kind == TorchArchiveKind::kDict) {
    add_entry("data.pkl", pickled_dict(tensors));
    add_entry("byteorder", "little");
  } else {
    const ScriptModules modules(tensors);
    add_entry("data.pkl", pickled_modules(modules, tensors));
    add_entry("code/__torch__.py", modules.source());
    add_entry("constants.pkl", pickled_no_constants());
  }
}

void TorchArchiveWriter::add_entry(const std::string& name, std::string_view bytes) {
  zip_.add(root_ + "/" + name, bytes);
}

void TorchArchiveWriter::add(const Tensor& tensor) {
  const std::string_view bytes(static_cast<const char*>(tensor.data()), tensor.size_bytes());
  zip_.add(fmt::format("{}/data/{}", root_, added_++), bytes, tensor.owner());
}

void TorchArchiveWriter::finish() {
  add_entry("version", kVersion);
  zip_.finish();
}

bool torch_archive_has(TorchArchiveKind kind, DType dtype) {
  const TorchDType* found = torch_dtype(dtype);
  return found != nullptr && (kind == TorchArchiveKind::kDict || !found->storage.empty());
}

uint64_t torch_archive_bytes(std::span<const TorchTensor> tensors) {
  uint64_t bytes = kBytesPerTensor;
  for (const TorchTensor& tensor : tensors) bytes += tensor.bytes() + tensor.name.size() + kBytesPerTensor;
  return bytes;
}

}  // namespace longhaul
