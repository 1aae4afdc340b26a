#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "longhaul/checkpoint/directory/element_stream.h"
#include "longhaul/io/files/file.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul::console {

// What a checkpoint or a file of weights says of a tensor.
struct StoredTensor {
  std::string name{};
  std::string dtype{};           // "float", or as the file names one that the library lacks
  std::optional<DType> known{};  // nullopt: the library lacks it, and its values are not read
  Shape shape{};
  uint64_t bytes = 0;
  size_t place = 0;  // in the order of its file of weights, so that it is read without a search
};

// The tensors of a checkpoint, of a safetensors file, or of an archive of PyTorch's: what is the same in all three.
// Any thread may call.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  TensorSource(const TensorSource&) = delete;
  TensorSource& operator=(const TensorSource&) = delete;

  const std::string& path() const { return path_; }
  const std::string& format() const { return format_; }  // "checkpoint", "safetensors", "PyTorch archive"
  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // sorted by name
  const StoredTensor* find(std::string_view name) const;                 // nullptr: there is none
  uint64_t total_bytes() const;

  // Both take one of tensors() whose dtype is known, and verify its checksum, where the format has one.
  virtual Tensor read(const StoredTensor& tensor) const = 0;
  // Not for strings. Of a checkpoint and of safetensors memory holds a piece of it; of an archive, the tensor.
  virtual std::unique_ptr<ElementStream> stream(const StoredTensor& tensor) const = 0;

  // Reads all, and returns what is damaged, a message each. `on_bytes` is called with the bytes of each part.
  virtual std::vector<std::string> damages(const std::function<void(uint64_t bytes)>& on_bytes) const = 0;
  // Whether flipped bits of tensors would be noticed.
  virtual bool has_checksums() const { return true; }

 protected:
  TensorSource(std::string path, std::string format) : path_(std::move(path)), format_(std::move(format)) {}
  void set_tensors(std::vector<StoredTensor> tensors);

 private:
  const std::string path_, format_;
  std::vector<StoredTensor> tensors_;
};

// `path`: the prefix of a checkpoint, or one of its files; a directory, which stands for its latest checkpoint; a file
// of weights. NotFoundError: there is no such thing; the message names what is near. Other errors are those of
// BundleReader, SafetensorsSource and TorchArchive.
std::unique_ptr<TensorSource> open_tensors(FileSystem& files, const std::string& path);

}  // namespace longhaul::console
