#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "longhaul/checkpoint/torch_archive/zip_writer.h"
#include "longhaul/io/files/file.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// A tensor that will be written.
struct TorchTensor {
  std::string name;
  DType dtype = kInvalid;
  Shape shape;

  uint64_t bytes() const { return static_cast<uint64_t>(shape.num_elements()) * dtype_size(dtype); }
};

enum class TorchArchiveKind {
  kDict,    // an OrderedDict: what torch.load() in Python returns, and load_state_dict() takes
  kModule,  // an object for each module: what torch::load(module, path) in C++ reads, and torch.jit.load() in Python
};

// Writes an archive of PyTorch's (docs/formats/torch_archive.md). The same calls give the same bytes.
//
//   TorchArchiveWriter writer(*file, "net", TorchArchiveKind::kDict, tensors);
//   for (const TorchTensor& one : tensors) writer.add(value_of(one));
//   writer.finish();
//
// One thread at a time may call.
class TorchArchiveWriter {
 public:
  // Writes what comes before the tensors. `root` is the folder in the archive, in PyTorch the file's name without its
  // ending. InvalidArgumentError: a name that the archive cannot have: it is not UTF-8; for modules, also
  // ScriptModules. UnimplementedError: PyTorch lacks a dtype (strings), or TorchScript does (uint16, uint32, uint64).
  TorchArchiveWriter(WritableFile& file, std::string root, TorchArchiveKind kind, std::span<const TorchTensor> tensors);

  // The next tensor. It is borrowed until the file is synced or closed; its bytes must not change until then.
  void add(const Tensor& tensor);

  // Writes what comes after them. The caller syncs and closes the file.
  void finish();

 private:
  void add_entry(const std::string& name, std::string_view bytes);

  ZipWriter zip_;
  const std::string root_;
  size_t added_ = 0;
};

// Whether archives of that kind have the dtype.
bool torch_archive_has(TorchArchiveKind kind, DType dtype);

// About the bytes of such a file, and no fewer.
uint64_t torch_archive_bytes(std::span<const TorchTensor> tensors);

}  // namespace longhaul
