#include "longhaul/checkpoint/torch_archive/torch_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"

namespace longhaul {
namespace {

constexpr std::string_view kPickleName = "/data.pkl";
constexpr std::string_view kByteOrderName = "/byteorder";
constexpr uint64_t kMaxByteOrder = 16;

// Views that repeat elements may need more memory than the file has bytes, up to this.
constexpr uint64_t kRepeatedBase = uint64_t{64} << 20;
constexpr uint64_t kRepeatedPerByte = 16;

constexpr std::string_view kZipMagic("PK\x03\x04", 4);
constexpr std::string_view kOldMagic("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14);  // before 1.6

std::string beginning(const ReadableFile& file) {
  std::string bytes(kOldMagic.size(), '\0');
  bytes.resize(file.read(0, bytes.data(), bytes.size()));
  return bytes;
}

std::unique_ptr<const ReadableFile> open_archive(FileSystem& files, const std::string& path) {
  std::unique_ptr<const ReadableFile> file = files.open(path);
  if (beginning(*file) == kOldMagic) {
    throw UnimplementedError(fmt::format(
        "{}: torch.save wrote it as versions before 1.6 did; in Python, torch.save(torch.load(path), path) converts it",
        path));
  }
  return file;
}

bool is_row_major(const Shape& shape, const std::vector<int64_t>& strides) {
  int64_t expected = 1;
  for (size_t i = strides.size(); i-- > 0;) {
    if (shape.dims()[i] != 1 && strides[i] != expected) return false;
    expected *= shape.dims()[i];
  }
  return true;
}

// Copies elements of `size` bytes to row-major order.
void gather(const char* from, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides, size_t size,
            char* out) {
  std::vector<int64_t> index(dims.size(), 0);
  int64_t place = 0;
  while (true) {
    std::memcpy(out, from + place * static_cast<int64_t>(size), size);
    out += size;
    size_t i = dims.size();
    while (i > 0 && ++index[i - 1] == dims[i - 1]) {
      place -= (dims[i - 1] - 1) * strides[i - 1];
      index[--i] = 0;
    }
    if (i == 0) return;
    place += strides[i - 1];
  }
}

// A tensor that fills its storage shares its bytes; any other is copied, so that it does not keep what is not its own.
Tensor tensor_in(const Tensor& storage, const TorchEntry& entry) {
  const TorchPlace& place = *entry.place;
  const bool is_dense = is_row_major(entry.shape, place.strides);
  if (is_dense && place.offset == 0 && entry.bytes() == storage.size_bytes()) {
    return Tensor::wrap(entry.dtype, entry.shape, storage.data(), storage.owner());
  }
  Tensor tensor(entry.dtype, entry.shape);
  const size_t size = dtype_size(entry.dtype);
  const char* from = static_cast<const char*>(storage.data()) + static_cast<size_t>(place.offset) * size;
  char* out = static_cast<char*>(tensor.mutable_data());
  if (is_dense) {
    std::memcpy(out, from, tensor.size_bytes());
  } else {
    gather(from, entry.shape.dims(), place.strides, size, out);
  }
  return tensor;
}

// A bool of another value must not get into a program.
void check_bools(const Tensor& tensor, const std::string& path, const std::string& name) {
  if (tensor.dtype() != kBool) return;
  const std::span bytes(static_cast<const unsigned char*>(tensor.data()), tensor.size_bytes());
  const auto wrong = std::find_if(bytes.begin(), bytes.end(), [](unsigned char byte) { return byte > 1; });
  if (wrong == bytes.end()) return;
  throw DataLossError(fmt::format("{}: tensor {}: element {} is {}, not a valid bool", path, excerpt(name),
                                  wrong - bytes.begin(), *wrong));
}

}  // namespace

TorchArchive::TorchArchive(const std::string& path, FileSystem& files)
    : file_(open_archive(files, path)), zip_(*file_, path), root_(find_root()), entries_(read_entries()) {}

// The folder of the one data.pkl that is not in a folder of a folder.
std::string TorchArchive::find_root() const {
  for (const ZipEntry& entry : zip_.entries()) {
    if (!entry.name.ends_with(kPickleName)) continue;
    const std::string root = entry.name.substr(0, entry.name.size() - kPickleName.size());
    if (root.find('/') == root.npos) return root;
  }
  throw DataLossError(
      fmt::format("{}: it has no data.pkl: it is a zip file, but not an archive of PyTorch", zip_.path()));
}

std::vector<TorchEntry> TorchArchive::read_entries() const {
  check_byte_order();
  const std::string name = root_ + std::string(kPickleName);
  Pickle pickle(zip_.read_text(*zip_.find(name), kMaxPickle), fmt::format("{}: {}", zip_.path(), excerpt(name)));
  std::vector<TorchEntry> entries = torch_entries(pickle);
  check_storages(entries);
  return entries;
}

void TorchArchive::check_byte_order() const {
  const ZipEntry* entry = zip_.find(root_ + std::string(kByteOrderName));
  if (entry == nullptr || zip_.read_text(*entry, kMaxByteOrder) == "little") return;
  throw UnimplementedError(
      fmt::format("{}: it was saved on a big-endian machine; save it there as safetensors, which have one byte order",
                  zip_.path()));
}

const ZipEntry& TorchArchive::storage_of(const TorchEntry& entry) const {
  const ZipEntry* storage = zip_.find(fmt::format("{}/data/{}", root_, entry.place->storage));
  if (storage != nullptr && storage->size >= entry.place->storage_bytes) return *storage;
  throw DataLossError(fmt::format("{}: tensor {}: its storage data/{} has {} bytes, but {} are wanted", zip_.path(),
                                  excerpt(entry.name), excerpt(entry.place->storage),
                                  storage == nullptr ? 0 : storage->size, entry.place->storage_bytes));
}

void TorchArchive::check_storages(const std::vector<TorchEntry>& entries) const {
  uint64_t left = kRepeatedBase + kRepeatedPerByte * zip_.file_size();
  for (const TorchEntry& entry : entries) {
    if (!entry.place || entry.bytes() == 0) continue;
    storage_of(entry);
    if (entry.bytes() > left) {
      throw DataLossError(
          fmt::format("{}: tensor {} repeats the elements of its storage: all tensors together have "
                      "more than {} bytes and {} times the file's",
                      zip_.path(), excerpt(entry.name), kRepeatedBase, kRepeatedPerByte));
    }
    left -= entry.bytes();
  }
}

Tensor TorchArchive::read_storage(const ZipEntry& storage) const {
  Tensor bytes(kUInt8, Shape{static_cast<int64_t>(storage.size)});
  zip_.read(storage, static_cast<char*>(bytes.mutable_data()));
  return bytes;
}

std::vector<Tensor> TorchArchive::read(std::span<const TorchEntry* const> wanted) const {
  std::map<const ZipEntry*, Tensor> storages;
  std::vector<Tensor> tensors;
  for (const TorchEntry* entry : wanted) {
    if (!entry->place) {
      tensors.push_back(entry->value);
    } else if (entry->bytes() == 0) {
      tensors.emplace_back(entry->dtype, entry->shape);
    } else {
      const ZipEntry& storage = storage_of(*entry);
      const auto [found, is_new] = storages.try_emplace(&storage);
      if (is_new) found->second = read_storage(storage);
      tensors.push_back(tensor_in(found->second, *entry));
      check_bools(tensors.back(), zip_.path(), entry->name);
    }
  }
  return tensors;
}

bool looks_like_torch_archive(const ReadableFile& file) {
  const std::string bytes = beginning(file);
  return bytes.starts_with(kZipMagic) || bytes == kOldMagic;
}

}  // namespace longhaul
