#include "longhaul/console/checkpoints/tensor_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/directory/checkpoint_reader.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/v1_checkpoint.h"
#include "longhaul/checkpoint/safetensors/safetensors_header.h"
#include "longhaul/checkpoint/torch_archive/torch_archive.h"

namespace longhaul::console {
namespace {

class CheckpointTensors final : public TensorSource {
 public:
  CheckpointTensors(FileSystem& files, const std::string& prefix)
      : TensorSource(prefix, "checkpoint"), files_(files), reader_(files, prefix) {
    std::vector<StoredTensor> tensors;
    for (const std::string& name : reader_.keys()) tensors.push_back(described(name, reader_.entry(name)));
    set_tensors(std::move(tensors));
  }

  Tensor read(const StoredTensor& tensor) const override { return reader_.read(tensor.name); }
  std::unique_ptr<ElementStream> stream(const StoredTensor& tensor) const override {
    return stream_elements(files_, reader_, tensor.name);
  }
  std::vector<std::string> damages(const std::function<void(uint64_t)>& on_bytes) const override {
    return reader_.verify(on_bytes);
  }

 private:
  static StoredTensor described(const std::string& name, const BundleReader::Entry& entry) {
    const bool is_known = is_known_dtype(entry.dtype);
    return {.name = name,
            .dtype = is_known ? dtype_name(static_cast<DType>(entry.dtype)) : checkpoint_dtype_name(entry.dtype),
            .known = is_known ? std::optional(static_cast<DType>(entry.dtype)) : std::nullopt,
            .shape = entry.shape,
            .bytes = entry.bytes};
  }

  FileSystem& files_;
  const BundleReader reader_;
};

// Bytes of a safetensors file, in order.
class FileStream final : public ElementStream {
 public:
  FileStream(const ReadableFile& file, uint64_t begin, uint64_t end, std::string where)
      : file_(file),
        at_(begin),
        end_(end),
        where_(std::move(where)),
        buffer_(std::min<uint64_t>(kPieceBytes, end - begin)) {}

  std::string_view next() override {
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(kPieceBytes, end_ - at_));
    const size_t count = wanted > 0 ? file_.read(at_, buffer_.data(), wanted) : 0;
    if (count < wanted) throw DataLossError(where_ + ": the file ended while it was read");
    at_ += count;
    return {buffer_.data(), count};
  }

 private:
  const ReadableFile& file_;
  uint64_t at_;
  const uint64_t end_;
  const std::string where_;
  std::vector<char> buffer_;
};

class SafetensorsTensors final : public TensorSource {
 public:
  SafetensorsTensors(std::unique_ptr<const ReadableFile> file, const std::string& path)
      : TensorSource(path, "safetensors"), file_(std::move(file)), header_(read_safetensors_header(*file_, path)) {
    std::vector<StoredTensor> tensors;
    for (const SafetensorsEntry& entry : header_.tensors) tensors.push_back(described(entry, tensors.size()));
    set_tensors(std::move(tensors));
  }

  Tensor read(const StoredTensor& stored) const override {
    Tensor tensor(stored.known.value(), stored.shape);
    const auto from = stream(stored);
    char* to = static_cast<char*>(tensor.mutable_data());
    for (std::string_view bytes = from->next(); !bytes.empty(); bytes = from->next()) {
      to = std::copy(bytes.begin(), bytes.end(), to);
    }
    return tensor;
  }
  std::unique_ptr<ElementStream> stream(const StoredTensor& tensor) const override {
    const SafetensorsEntry& entry = header_.tensors.at(tensor.place);
    return std::make_unique<FileStream>(*file_, header_.data_begin + entry.begin, header_.data_begin + entry.end,
                                        fmt::format("{}: tensor {}", path(), tensor.name));
  }
  // The header says that all bytes of the file are there, and nothing says what they should be.
  std::vector<std::string> damages(const std::function<void(uint64_t)>&) const override { return {}; }
  bool has_checksums() const override { return false; }

 private:
  static StoredTensor described(const SafetensorsEntry& entry, size_t place) {
    const DType dtype = safetensors_dtype(entry.dtype).value_or(kInvalid);
    return {.name = entry.name,
            .dtype = dtype != kInvalid ? dtype_name(dtype) : entry.dtype,
            .known = dtype != kInvalid ? std::optional(dtype) : std::nullopt,
            .shape = entry.shape,
            .bytes = entry.bytes(),
            .place = place};
  }

  const std::unique_ptr<const ReadableFile> file_;
  const SafetensorsHeader header_;
};

class ArchiveTensors final : public TensorSource {
 public:
  ArchiveTensors(FileSystem& files, const std::string& path)
      : TensorSource(path, "PyTorch archive"), archive_(path, files) {
    std::vector<StoredTensor> tensors;
    for (const TorchEntry& entry : archive_.entries()) tensors.push_back(described(entry, tensors.size()));
    set_tensors(std::move(tensors));
  }

  Tensor read(const StoredTensor& tensor) const override {
    const TorchEntry& entry = archive_.entries().at(tensor.place);
    if (!entry.place) return entry.value;
    const TorchEntry* const wanted[] = {&entry};
    return archive_.read(wanted).front();
  }
  std::unique_ptr<ElementStream> stream(const StoredTensor& tensor) const override {
    return std::make_unique<MemoryStream>(read(tensor));
  }
  std::vector<std::string> damages(const std::function<void(uint64_t)>& on_bytes) const override {
    std::vector<std::string> damages;
    for (const StoredTensor& tensor : tensors()) {
      if (!tensor.known) continue;
      try {
        read(tensor);
      } catch (const DataLossError& error) {
        damages.emplace_back(error.what());
      }
      if (on_bytes) on_bytes(tensor.bytes);
    }
    return damages;
  }

 private:
  static StoredTensor described(const TorchEntry& entry, size_t place) {
    return {.name = entry.name,
            .dtype = entry.dtype != kInvalid ? dtype_name(entry.dtype) : entry.dtype_name,
            .known = entry.dtype != kInvalid ? std::optional(entry.dtype) : std::nullopt,
            .shape = entry.shape,
            .bytes = entry.bytes(),
            .place = place};
  }

  const TorchArchive archive_;
};

// "m-5" of "m-5.index", "m-5.meta" and "m-5.data-00000-of-00001", if it is a checkpoint.
std::optional<std::string> prefix_of_part(FileSystem& files, const std::string& path) {
  std::string prefix = base_of_data_name(path).value_or(path);
  for (const std::string_view ending : {".index", ".meta"}) {
    if (prefix.ends_with(ending)) prefix.erase(prefix.size() - ending.size());
  }
  return prefix != path && committed_prefix(files, prefix) ? std::optional(prefix) : std::nullopt;
}

}  // namespace

const StoredTensor* TensorSource::find(std::string_view name) const {
  const auto it = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                   [](const StoredTensor& one, std::string_view wanted) { return one.name < wanted; });
  return it != tensors_.end() && it->name == name ? &*it : nullptr;
}

uint64_t TensorSource::total_bytes() const {
  uint64_t total = 0;
  for (const StoredTensor& tensor : tensors_) total += tensor.bytes;
  return total;
}

void TensorSource::set_tensors(std::vector<StoredTensor> tensors) {
  tensors_ = std::move(tensors);
  std::sort(tensors_.begin(), tensors_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

std::unique_ptr<TensorSource> open_tensors(FileSystem& files, const std::string& named) {
  const std::string path = strip_file_scheme(named);
  if (files.is_directory(path)) return std::make_unique<CheckpointTensors>(files, checkpoint_prefix(files, path));
  if (committed_prefix(files, path)) return std::make_unique<CheckpointTensors>(files, path);
  if (const auto prefix = prefix_of_part(files, path)) return std::make_unique<CheckpointTensors>(files, *prefix);
  if (!files.exists(path) || is_v1_file(files, path)) {
    throw_no_checkpoint(files, path, fmt::format("there is no checkpoint, directory or file {}", path));
  }
  auto file = files.open(path);
  if (looks_like_torch_archive(*file)) return std::make_unique<ArchiveTensors>(files, path);
  return std::make_unique<SafetensorsTensors>(std::move(file), path);
}

}  // namespace longhaul::console
