#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/checkpoint/torch_archive/torch_entries.h"
#include "longhaul/checkpoint/torch_archive/zip_reader.h"
#include "longhaul/io/files/file.h"

namespace longhaul {

// Reads an archive of PyTorch's (docs/formats/torch_archive.md): of torch.save() in Python, of torch::save() in C++, of
// a TorchScript module. Nothing in it is executed. Any thread may call; tensors can be read in parallel.
class TorchArchive {
 public:
  // Reads what it has, but no tensor's bytes. NotFoundError: no such file. DataLossError: it is damaged, or not such an
  // archive. UnimplementedError: it is intact, but not supported: saved before PyTorch 1.6, on a big-endian machine, or
  // with objects of other classes. InvalidArgumentError: two values have the same name. The message has the file, the
  // place and the remedy.
  explicit TorchArchive(const std::string& path, FileSystem& files = FileSystem::real());

  const std::vector<TorchEntry>& entries() const { return entries_; }  // in the file's order

  // Their values, row-major, each storage read once and verified by its checksum. An entry's dtype must be known.
  // DataLossError: the file is damaged, or a bool is neither 0 nor 1; the message has the tensor's name.
  std::vector<Tensor> read(std::span<const TorchEntry* const> wanted) const;

 private:
  std::vector<TorchEntry> read_entries() const;
  std::string find_root() const;
  void check_byte_order() const;
  const ZipEntry& storage_of(const TorchEntry& entry) const;
  void check_storages(const std::vector<TorchEntry>& entries) const;
  Tensor read_storage(const ZipEntry& storage) const;

  const std::unique_ptr<const ReadableFile> file_;
  const ZipReader zip_;
  const std::string root_;  // the folder in it: "archive", "model"
  const std::vector<TorchEntry> entries_;
};

// Whether the file begins as such an archive does, or as files that torch.save() wrote before PyTorch 1.6.
bool looks_like_torch_archive(const ReadableFile& file);

}  // namespace longhaul
