#include "longhaul/checkpoint/bundle/bundle_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/checkpoint/bundle/bundle_format.h"
#include "longhaul/checkpoint/bundle/string_tensor.h"
#include "longhaul/checkpoint/bundle/uncommitted_files.h"
#include "longhaul/checkpoint/bundle/written_entries.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/io/records/crc32c.h"

namespace longhaul {
namespace {

// Where a tensor begins that comes after `offset` bytes.
uint64_t offset_for(const Tensor& tensor, uint64_t offset) {
  if (tensor.size_bytes() < bundle_format::kLargeTensor) return offset;
  const uint64_t over = offset % bundle_format::kLargeAlignment;
  return over == 0 ? offset : offset + bundle_format::kLargeAlignment - over;
}

// The bytes in pieces, each one's checksum taken while it is in the cache.
StoredBytes write_bytes(std::string_view bytes, const std::function<void(std::string_view)>& append) {
  StoredBytes stored{bytes.size(), 0};
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, bundle_format::kChunk);
    stored.crc = extend_crc32c(stored.crc, piece);
    append(piece);
    bytes.remove_prefix(piece.size());
  }
  return stored;
}

std::string checked_prefix(const std::string& prefix, int num_shards) {
  const std::string path = strip_file_scheme(prefix);
  if (num_shards < 1)
    throw InvalidArgumentError(
        fmt::format("saving {}: the number of data files must be at least 1, not {}", path, num_shards));
  return path;
}

}  // namespace

void BundleWriterOptions::add_expected(int shard, const Tensor& tensor) {
  expected_bytes.resize(std::max(expected_bytes.size(), static_cast<size_t>(shard) + 1));
  uint64_t& bytes = expected_bytes[static_cast<size_t>(shard)];
  bytes = offset_for(tensor, bytes) + tensor.size_bytes();
}

BundleWriter::BundleWriter(FileSystem& files, const std::string& prefix, int num_shards)
    : BundleWriter(files, prefix, BundleWriterOptions{.num_shards = num_shards}) {}

BundleWriter::BundleWriter(FileSystem& files, const std::string& prefix, const BundleWriterOptions& options)
    : limit_(options.max_bytes_per_second, *options.clock),
      files_(std::make_unique<UncommittedFiles>(files, checked_prefix(prefix, options.num_shards))),
      entries_(std::make_unique<WrittenEntries>(files_->prefix())) {
  for (int i = 0; i < options.num_shards; ++i) {
    const size_t shard = static_cast<size_t>(i);
    const uint64_t expected = shard < options.expected_bytes.size() ? options.expected_bytes[shard] : 0;
    shards_.push_back({&files_->create_data(data_path(files_->prefix(), i, options.num_shards), expected)});
  }
}

BundleWriter::~BundleWriter() = default;

void BundleWriter::advance(State from, State to, const std::function<void()>& work) {
  if (state_ != from) {
    const char* why = state_ == State::kFailed ? "an earlier call failed" : "the calls are out of order";
    throw FailedPreconditionError(fmt::format("saving {}: {}", files_->prefix(), why));
  }
  state_ = State::kFailed;
  work();
  state_ = to;
}

void BundleWriter::use_shard(int shard) {
  if (shard < 0 || static_cast<size_t>(shard) >= shards_.size()) {
    throw InvalidArgumentError(
        fmt::format("saving {}: data file {} does not exist; there are {}", files_->prefix(), shard, shards_.size()));
  }
  shard_ = static_cast<size_t>(shard);
}

void BundleWriter::add(const std::string& name, const Tensor& tensor) {
  advance(State::kAdding, State::kAdding, [&] {
    entries_->check_new(name);
    write_tensor(name, tensor);
  });
}

void BundleWriter::add_slice(const std::string& name, const Shape& full_shape, const TensorSlice& slice,
                             const Tensor& tensor) {
  if (slice.covers(full_shape)) return add(name, tensor.reshaped(full_shape));
  advance(State::kAdding, State::kAdding, [&] {
    entries_->add_slice(name, full_shape, slice, tensor);
    write_tensor(slice_key(name, slice), tensor);
  });
}

void BundleWriter::write_tensor(const std::string& key, const Tensor& tensor) {
  if (!tensor.defined())
    throw InvalidArgumentError(fmt::format("saving {}: the tensor for {} is undefined", files_->prefix(), key));
  pad(offset_for(tensor, shards_[shard_].offset));
  const uint64_t offset = shards_[shard_].offset;
  const auto append_piece = [&](std::string_view piece) { append(piece, tensor.owner()); };
  const StoredBytes stored =
      tensor.dtype() == kString
          ? write_strings(tensor.flat<std::string>(), [this](std::string_view piece) { append(piece); })
          : write_bytes({static_cast<const char*>(tensor.data()), tensor.size_bytes()}, append_piece);
  entries_->add(key, tensor, shard_, offset, stored);
}

// With an owner, the file may keep it and write the bytes later.
void BundleWriter::append(std::string_view bytes, const std::shared_ptr<const void>& owner) {
  Shard& shard = shards_[shard_];
  limit_.take(bytes.size());
  if (owner) {
    shard.file->append_borrowed(bytes, owner);
  } else {
    shard.file->append(bytes);
  }
  shard.offset += bytes.size();
}

void BundleWriter::pad(uint64_t offset) {
  const uint64_t gap = offset - shards_[shard_].offset;
  if (gap != 0) append(std::string(gap, '\0'));
}

void BundleWriter::add_file(const std::string& path, std::string_view contents) {
  advance(State::kAdding, State::kAdding, [&] { files_->write_other(path, contents); });
}

void BundleWriter::finish_data() {
  advance(State::kAdding, State::kDataFinished,
          [&] { files_->finish_data([&](WritableFile& index) { entries_->write(index, shards_.size()); }); });
}

void BundleWriter::commit() {
  advance(State::kDataFinished, State::kCommitted, [&] { files_->commit(); });
  files_->remove_leftovers();
}

uint64_t BundleWriter::data_bytes() const {
  uint64_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.offset;
  return bytes;
}

}  // namespace longhaul
