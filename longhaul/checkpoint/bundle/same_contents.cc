#include "longhaul/checkpoint/bundle/same_contents.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_format.h"
#include "longhaul/checkpoint/bundle/bundle_index.h"
#include "longhaul/checkpoint/bundle/string_tensor.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/io/records/crc32c.h"

namespace longhaul {
namespace {

// A tensor, and the bytes of the checkpoint that should be it.
struct Pair {
  const ExpectedTensor* expected;
  const StoredPiece* stored;
};

// The bytes as a data file has them, in order.
StoredBytes for_each_piece(const Tensor& tensor, const std::function<void(std::string_view)>& use) {
  if (tensor.dtype() == kString) return write_strings(tensor.flat<std::string>(), use);
  std::string_view bytes{static_cast<const char*>(tensor.data()), tensor.size_bytes()};
  StoredBytes stored{bytes.size(), 0};
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), bundle_format::kChunk))) {
    const std::string_view piece = bytes.substr(0, bundle_format::kChunk);
    stored.crc = extend_crc32c(stored.crc, piece);
    use(piece);
  }
  return stored;
}

// The part of the whole that the value is, as the index has it; the entry of the whole is `whole`.
const StoredPiece* find_slice(const BundleIndex& index, const ExpectedTensor& expected, const StoredPiece& whole) {
  const auto [full_shape, slice] = parse_shape_and_slice(expected.slice);
  if (whole.entry.shape != full_shape) return nullptr;
  if (slice.covers(full_shape)) return whole.entry.slices.empty() ? &whole : nullptr;
  const auto found = index.pieces().find(slice_key(expected.name, slice));
  return found == index.pieces().end() ? nullptr : &found->second;
}

const StoredPiece* find_piece(const BundleIndex& index, const ExpectedTensor& expected) {
  const auto whole = index.pieces().find(expected.name);
  if (whole == index.pieces().end()) return nullptr;
  if (!expected.slice.empty()) return find_slice(index, expected, whole->second);
  const BundleEntry& entry = whole->second.entry;
  return entry.slices.empty() && entry.shape == expected.value.shape() ? &whole->second : nullptr;
}

// Empty: the index names something else.
std::vector<Pair> pairs_of(const BundleIndex& index, std::span<const ExpectedTensor> tensors) {
  std::vector<Pair> pairs;
  std::set<const StoredPiece*> accounted_for;
  for (const ExpectedTensor& expected : tensors) {
    const StoredPiece* piece = find_piece(index, expected);
    if (piece == nullptr || piece->entry.dtype != static_cast<int>(expected.value.dtype())) return {};
    pairs.push_back({&expected, piece});
    accounted_for.insert({piece, &index.piece(expected.name)});
  }
  return accounted_for.size() == index.pieces().size() ? pairs : std::vector<Pair>{};
}

bool has_same_checksum(const Pair& pair) {
  const StoredBytes bytes = pair.expected->checksum ? *pair.expected->checksum : checksum_of(pair.expected->value);
  return bytes.size == static_cast<uint64_t>(pair.stored->size) && bytes.crc == pair.stored->crc;
}

// Compares bytes with those of a file, in the order in which they come.
class Comparison {
 public:
  Comparison(const ReadableFile& file, uint64_t offset) : file_(file), offset_(offset) {}
  void add(std::string_view bytes) {
    if (!is_same_) return;
    buffer_.resize(bytes.size());
    is_same_ = file_.read(offset_, buffer_.data(), bytes.size()) == bytes.size() && buffer_ == bytes;
    offset_ += bytes.size();
  }
  bool is_same() const { return is_same_; }

 private:
  const ReadableFile& file_;
  uint64_t offset_;
  std::string buffer_;
  bool is_same_ = true;
};

// The data files of a checkpoint, opened when they are needed.
class DataFiles {
 public:
  DataFiles(FileSystem& files, const BundleIndex& index) : files_(files), index_(index) {}
  bool has_same_bytes(const Pair& pair) {
    Comparison comparison(file(pair.stored->shard), static_cast<uint64_t>(pair.stored->offset));
    for_each_piece(pair.expected->value, [&](std::string_view piece) { comparison.add(piece); });
    return comparison.is_same();
  }

 private:
  const ReadableFile& file(int shard) {
    auto& file = opened_[shard];
    if (!file) file = files_.open(data_path(index_.prefix(), shard, index_.num_shards()));
    return *file;
  }

  FileSystem& files_;
  const BundleIndex& index_;
  std::map<int, std::unique_ptr<const ReadableFile>> opened_;
};

// Whether the checkpoint has these tensors, and no others, for which `is_same` holds.
bool compare(FileSystem& files, const std::string& prefix, std::span<const ExpectedTensor> tensors,
             const std::function<bool(const BundleIndex&, const std::vector<Pair>&)>& is_same) {
  try {
    if (!files.exists(index_path(prefix))) return false;
    const BundleIndex index(files, prefix);
    if (index.big_endian() || index.committed() != index.prefix()) return false;
    const std::vector<Pair> pairs = pairs_of(index, tensors);
    return !pairs.empty() && is_same(index, pairs);
  } catch (const std::exception& error) {
    log_debug("{} cannot be compared with the values to be saved: {}", prefix, error.what());
    return false;
  }
}

}  // namespace

ExpectedTensor expected_elsewhere(std::string name, std::string slice, DType dtype, const Shape& shape,
                                  const StoredBytes& checksum) {
  return {std::move(name), std::move(slice), Tensor::wrap(dtype, shape, nullptr, nullptr), checksum};
}

StoredBytes checksum_of(const Tensor& tensor) {
  return for_each_piece(tensor, [](std::string_view) {});
}

bool has_exactly(FileSystem& files, const std::string& prefix, std::span<const ExpectedTensor> tensors) {
  return compare(files, prefix, tensors, [&files](const BundleIndex& index, const std::vector<Pair>& pairs) {
    DataFiles data(files, index);
    return std::all_of(pairs.begin(), pairs.end(), has_same_checksum) &&
           std::all_of(pairs.begin(), pairs.end(), [&](const Pair& pair) { return data.has_same_bytes(pair); });
  });
}

bool has_but_for(FileSystem& files, const std::string& prefix, std::span<const ExpectedTensor> tensors,
                 const std::function<bool(const std::string& name)>& may_differ) {
  return compare(files, prefix, tensors, [&may_differ](const BundleIndex&, const std::vector<Pair>& pairs) {
    return std::all_of(pairs.begin(), pairs.end(), [&may_differ](const Pair& pair) {
      return may_differ(pair.expected->name) || has_same_checksum(pair);
    });
  });
}

}  // namespace longhaul
