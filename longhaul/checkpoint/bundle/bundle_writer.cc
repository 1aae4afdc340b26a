#include "longhaul/checkpoint/bundle/bundle_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/checkpoint/bundle/bundle_proto.h"
#include "longhaul/checkpoint/bundle/uncommitted_files.h"
#include "longhaul/checkpoint/bundle/written_entries.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"

namespace longhaul {
namespace {

std::string checked_prefix(const std::string& prefix, int num_shards) {
  const std::string path = strip_file_scheme(prefix);
  if (num_shards < 1)
    throw InvalidArgumentError(
        fmt::format("saving {}: the number of data files must be at least 1, not {}", path, num_shards));
  return path;
}

}  // namespace

void BundleWriterOptions::add_expected(int shard, const Tensor& tensor) {
  add_expected(shard, tensor.size_bytes());
}

void BundleWriterOptions::add_expected(int shard, uint64_t size) {
  expected_bytes.resize(std::max(expected_bytes.size(), static_cast<size_t>(shard) + 1));
  uint64_t& bytes = expected_bytes[static_cast<size_t>(shard)];
  bytes = ShardWriter::offset_for(size, bytes) + size;
}

BundleWriter::BundleWriter(FileSystem& files, const std::string& prefix, int num_shards)
    : BundleWriter(files, prefix, BundleWriterOptions{.num_shards = num_shards}) {}

BundleWriter::BundleWriter(FileSystem& files, const std::string& prefix, const BundleWriterOptions& options)
    : limit_(options.max_bytes_per_second, *options.clock, options.pause),
      files_(std::make_unique<UncommittedFiles>(files, checked_prefix(prefix, options.num_shards))),
      entries_(std::make_unique<WrittenEntries>(files_->prefix())) {
  if (options.data_elsewhere) adopted_.resize(static_cast<size_t>(options.num_shards));
  for (int i = 0; i < options.num_shards; ++i) {
    const size_t shard = static_cast<size_t>(i);
    const std::string path = data_path(files_->prefix(), i, options.num_shards);
    const uint64_t expected = shard < options.expected_bytes.size() ? options.expected_bytes[shard] : 0;
    if (options.data_elsewhere) {
      files_->expect_data(path);
    } else {
      shards_.emplace_back(files_->create_data(path, expected), limit_);
    }
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
  if (shard < 0 || static_cast<size_t>(shard) >= files_->num_data()) {
    throw InvalidArgumentError(fmt::format("saving {}: data file {} does not exist; there are {}", files_->prefix(),
                                           shard, files_->num_data()));
  }
  shard_ = static_cast<size_t>(shard);
}

void BundleWriter::add_bytes(const std::string& name, const WriteBytes& write) {
  advance(State::kAdding, State::kAdding, [&] {
    entries_->check_new(name);
    entries_->add(name, write(), shard_);
  });
}

void BundleWriter::add_part(const std::string& name, const Shape& full_shape, const TensorSlice& slice,
                            const proto::BundleEntryProto& part, const WriteBytes& write) {
  advance(State::kAdding, State::kAdding, [&] {
    entries_->add_slice(name, full_shape, slice, static_cast<DType>(part.dtype()), shape_from(part.shape()));
    entries_->add(slice_key(name, slice), write(), shard_);
  });
}

void BundleWriter::add(const std::string& name, const Tensor& tensor) {
  add_bytes(name, [&] {
    if (!tensor.defined())
      throw InvalidArgumentError(fmt::format("saving {}: the tensor for {} is undefined", files_->prefix(), name));
    return data().write(tensor);
  });
}

void BundleWriter::add_slice(const std::string& name, const Shape& full_shape, const TensorSlice& slice,
                             const Tensor& tensor) {
  if (slice.covers(full_shape)) return add(name, tensor.reshaped(full_shape));
  add_part(name, full_shape, slice, entry_of(tensor.dtype(), tensor.shape()), [&] { return data().write(tensor); });
}

void BundleWriter::add(const std::string& name, const TensorInPieces& tensor) {
  add_bytes(name, [&] { return data().write(tensor); });
}

void BundleWriter::add_slice(const std::string& name, const Shape& full_shape, const TensorSlice& slice,
                             const TensorInPieces& tensor) {
  if (slice.covers(full_shape)) return add(name, TensorInPieces{tensor.dtype, full_shape, tensor.next});
  add_part(name, full_shape, slice, entry_of(tensor.dtype, tensor.shape), [&] { return data().write(tensor); });
}

void BundleWriter::adopt(const std::string& name, const proto::BundleEntryProto& entry) {
  add_bytes(name, [&] { return entry; });
}

void BundleWriter::adopt_slice(const std::string& name, const Shape& full_shape, const TensorSlice& slice,
                               const proto::BundleEntryProto& entry) {
  if (!slice.covers(full_shape)) return add_part(name, full_shape, slice, entry, [&] { return entry; });
  proto::BundleEntryProto whole = entry;
  *whole.mutable_shape() = entry_of(static_cast<DType>(entry.dtype()), full_shape).shape();
  adopt(name, whole);
}

void BundleWriter::adopt_file(uint64_t bytes) {
  advance(State::kAdding, State::kAdding, [&] {
    adopted_.at(shard_) = bytes;
    files_->adopt_data(shard_, bytes);
  });
}

const std::string& BundleWriter::temporary_data(int shard) const {
  return files_->temporary_data(static_cast<size_t>(shard));
}

ShardWriter& BundleWriter::data() {
  if (!shards_.empty()) return shards_[shard_];
  throw FailedPreconditionError(fmt::format("saving {}: the data files are written elsewhere", files_->prefix()));
}

void BundleWriter::add_file(const std::string& path, std::string_view contents) {
  advance(State::kAdding, State::kAdding, [&] { files_->write_other(path, contents); });
}

void BundleWriter::finish_data() {
  advance(State::kAdding, State::kDataFinished,
          [&] { files_->finish_data([&](WritableFile& index) { entries_->write(index, files_->num_data()); }); });
}

void BundleWriter::commit() {
  advance(State::kDataFinished, State::kCommitted, [&] { files_->commit(); });
  files_->remove_leftovers();
}

uint64_t BundleWriter::data_bytes() const {
  uint64_t bytes = 0;
  for (const ShardWriter& shard : shards_) bytes += shard.bytes();
  for (const uint64_t adopted : adopted_) bytes += adopted;
  return bytes;
}

}  // namespace longhaul
