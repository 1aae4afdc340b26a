#include "longhaul/checkpoint/bundle/bundle_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_format.h"
#include "longhaul/checkpoint/bundle/bundle_proto.h"
#include "longhaul/checkpoint/bundle/string_tensor.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/corrupt_set.h"
#include "longhaul/checkpoint/files/set_aside.h"
#include "longhaul/checkpoint/table/table_writer.h"
#include "longhaul/io/crc32c.h"
#include "longhaul/io/directory_lock.h"

namespace longhaul {
namespace {

std::string header(size_t num_shards) {
  proto::BundleHeaderProto header;
  header.set_num_shards(static_cast<int32_t>(num_shards));
  header.set_endianness(proto::BundleHeaderProto::LITTLE);
  header.mutable_version()->set_producer(bundle_format::kVersion);
  return header.SerializeAsString();
}

proto::BundleEntryProto entry_of(DType dtype, const Shape& shape) {
  proto::BundleEntryProto entry;
  entry.set_dtype(static_cast<proto::DataType>(dtype));
  set_shape(*entry.mutable_shape(), shape);
  return entry;
}

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

// Whether TensorFlow's reader takes slices of that dtype.
bool tensorflow_reads_slices_of(DType dtype) {
  return dtype != kHalf && dtype != kUInt16 && dtype != kUInt32 && dtype != kUInt64;
}

// Once in a process: each checkpoint has them again.
void warn_of_unreadable_slices(const std::string& name, DType dtype) {
  static std::atomic<bool> warned{false};
  if (tensorflow_reads_slices_of(dtype) || warned.exchange(true)) return;
  log_warning(
      "{} is {} and is stored in slices: Longhaul restores it, but TensorFlow's reader refuses slices of half, uint16, "
      "uint32 and uint64. Store it whole, or as another dtype, if TensorFlow is to read these checkpoints",
      name, dtype_name(dtype));
}

void sync_and_close(WritableFile& file) {
  file.sync();
  file.close();
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
    : files_(files),
      prefix_(strip_file_scheme(prefix)),
      under_way_(prefix_),
      directory_(directory_name(prefix_)),
      index_temporary_(temporary_path(index_path(prefix_))),
      limit_(options.max_bytes_per_second, *options.clock) {
  const int num_shards = options.num_shards;
  if (num_shards < 1) throw InvalidArgumentError(fmt::format("saving {} in {} data files", prefix_, num_shards));
  check_directory_owner(files_, prefix_);
  files_.make_directories(directory_);
  remove_stale_temporaries(files_, prefix_);
  for (int i = 0; i < num_shards; ++i) {
    const std::string path = data_path(prefix_, i, num_shards);
    shards_.push_back({path, temporary_path(path), nullptr});
  }
  try {
    for (size_t i = 0; i < shards_.size(); ++i) {
      const uint64_t expected = i < options.expected_bytes.size() ? options.expected_bytes[i] : 0;
      shards_[i].file = files_.create_large(shards_[i].temporary,
                                            {.if_exists = FileSystem::IfExists::kFail, .expected_bytes = expected});
    }
  } catch (...) {
    remove_temporaries();
    throw;
  }
}

BundleWriter::~BundleWriter() {
  if (index_in_place_) return;
  try {
    undo();
  } catch (const std::exception& error) {
    log_warning("{} was not saved, and cleaning up failed: {}", prefix_, error.what());
  }
}

void BundleWriter::advance(State from, State to, const std::function<void()>& work) {
  if (state_ != from) {
    const char* why = state_ == State::kFailed ? "an earlier error spoiled it" : "the calls are not in order";
    throw FailedPreconditionError(fmt::format("saving {}: {}", prefix_, why));
  }
  state_ = State::kFailed;
  work();
  state_ = to;
}

void BundleWriter::use_shard(int shard) {
  if (shard < 0 || static_cast<size_t>(shard) >= shards_.size()) {
    throw InvalidArgumentError(fmt::format("saving {}: data file {} of {}", prefix_, shard, shards_.size()));
  }
  shard_ = static_cast<size_t>(shard);
}

void BundleWriter::check_new_key(const std::string& name, const std::string& key) const {
  if (key.empty()) throw InvalidArgumentError(fmt::format("saving {}: a tensor without a name", prefix_));
  if (entries_.contains(key)) throw InvalidArgumentError(fmt::format("saving {}: duplicate key: {}", prefix_, name));
}

void BundleWriter::add(const std::string& name, const Tensor& tensor) {
  advance(State::kAdding, State::kAdding, [&] {
    check_new_key(name, name);
    write_tensor(name, tensor);
  });
}

void BundleWriter::add_slice(const std::string& name, const Shape& full_shape, const TensorSlice& slice,
                             const Tensor& tensor) {
  if (slice.covers(full_shape)) return add(name, tensor.reshaped(full_shape));
  advance(State::kAdding, State::kAdding, [&] {
    const TensorSlice box = slice.within(full_shape);
    if (tensor.shape() != shape_of(box)) {
      throw InvalidArgumentError(fmt::format("saving {}: slice {} of {} has shape {}, but the tensor {}", prefix_,
                                             slice.to_string(), name, shape_of(box).to_string(),
                                             tensor.shape().to_string()));
    }
    auto& entry = whole_entry(name, full_shape, tensor.dtype());
    for (const TensorSlice& other : slices_[name]) {
      if (common_elements(box, other) == 0) continue;
      throw InvalidArgumentError(fmt::format("saving {}: slices {} and {} of {} overlap", prefix_, other.to_string(),
                                             slice.to_string(), name));
    }
    warn_of_unreadable_slices(name, tensor.dtype());
    slices_[name].push_back(box);
    set_slice(*entry.add_slices(), slice);
    write_tensor(slice_key(name, slice), tensor);
  });
}

proto::BundleEntryProto& BundleWriter::whole_entry(const std::string& name, const Shape& full_shape, DType dtype) {
  if (!slices_.contains(name)) {
    check_new_key(name, name);
    return entries_.emplace(name, entry_of(dtype, full_shape)).first->second;
  }
  auto& entry = entries_.at(name);
  if (entry.dtype() != static_cast<int>(dtype) || shape_from(entry.shape()) != full_shape) {
    throw InvalidArgumentError(fmt::format("saving {}: the slices of {} disagree: {}{} and {}{}", prefix_, name,
                                           dtype_name(static_cast<DType>(entry.dtype())),
                                           shape_from(entry.shape()).to_string(), dtype_name(dtype),
                                           full_shape.to_string()));
  }
  return entry;
}

void BundleWriter::write_tensor(const std::string& key, const Tensor& tensor) {
  if (!tensor.defined()) throw InvalidArgumentError(fmt::format("saving {}: no tensor for {}", prefix_, key));
  pad(offset_for(tensor, shards_[shard_].offset));
  auto entry = entry_of(tensor.dtype(), tensor.shape());
  entry.set_shard_id(static_cast<int32_t>(shard_));
  entry.set_offset(static_cast<int64_t>(shards_[shard_].offset));
  const auto append_piece = [&](std::string_view piece) { append(piece, tensor.owner()); };
  const StoredBytes stored =
      tensor.dtype() == kString
          ? write_strings(tensor.flat<std::string>(), [this](std::string_view piece) { append(piece); })
          : write_bytes({static_cast<const char*>(tensor.data()), tensor.size_bytes()}, append_piece);
  entry.set_size(static_cast<int64_t>(stored.size));
  entry.set_crc32c(mask_crc32c(stored.crc));
  entries_[key] = std::move(entry);
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
  advance(State::kAdding, State::kAdding, [&] {
    OtherFile& other = others_.emplace_back(OtherFile{path, temporary_path(path), nullptr});
    other.file = files_.create(other.temporary, FileSystem::IfExists::kFail);
    other.file->append(contents);
  });
}

void BundleWriter::finish_data() {
  advance(State::kAdding, State::kDataFinished, [&] {
    const auto index = write_index();
    for (const OtherFile& other : others_) sync_and_close(*other.file);
    sync_and_close(*index);
    files_.sync_directory(directory_);
    for (const Shard& shard : shards_) sync_and_close(*shard.file);
    check_directory_owner(files_, prefix_);
    prefix_touched_ = true;
    if (files_.exists(index_path(prefix_))) {
      set_aside(files_, prefix_);
    } else {
      keep_lost_data();
    }
    give_names();
  });
}

// Data of this name that has no index may be that of a checkpoint whose index was lost. What a save has left that was
// cut off is gone by now, where a chief has begun here.
void BundleWriter::keep_lost_data() {
  if (data_files_of(files_, prefix_).empty() || files_.exists(index_path(aside_prefix(prefix_)))) return;
  log_warning("there is data of {} without an index, which this save does not replace: it is now {}", prefix_,
              mark_corrupt(files_, prefix_));
}

void BundleWriter::give_names() {
  for (const Shard& shard : shards_) rename_as_owner(shard.temporary, shard.path);
  for (const OtherFile& other : others_) rename_as_owner(other.temporary, other.path);
}

void BundleWriter::commit() {
  advance(State::kDataFinished, State::kCommitted, [&] {
    files_.sync_directory(directory_);
    rename_as_owner(index_temporary_, index_path(prefix_));
    index_in_place_ = true;
    files_.sync_directory(directory_);
  });
  remove_leftovers();
}

void BundleWriter::rename_as_owner(const std::string& from, const std::string& to) {
  check_directory_owner(files_, to);
  files_.rename(from, to);
}

std::unique_ptr<WritableFile> BundleWriter::write_index() {
  auto file = files_.create(index_temporary_, FileSystem::IfExists::kFail);
  TableWriter table(*file);
  table.add("", header(shards_.size()));
  for (const auto& [key, entry] : entries_) table.add(key, entry.SerializeAsString());
  table.finish();
  return file;
}

// The checkpoint is committed: what fails here costs room on the disk, and no more.
void BundleWriter::remove_leftovers() {
  try {
    check_directory_owner(files_, prefix_);
    drop_aside(files_, prefix_);
    for (const std::string& path : data_files_of(files_, prefix_)) {
      const bool ours = std::any_of(shards_.begin(), shards_.end(), [&](const Shard& s) { return s.path == path; });
      if (!ours) files_.remove(path);
    }
  } catch (const Error& error) {
    log_warning("{} is saved, but files of the one before it could not be removed: {}", prefix_, error.what());
  }
}

void BundleWriter::remove_temporaries() {
  remove_temporary_files();
  remove_if_exists(files_, index_temporary_);
}

// Without the index.
void BundleWriter::remove_temporary_files() {
  for (Shard& shard : shards_) {
    shard.file.reset();
    remove_if_exists(files_, shard.temporary);
  }
  for (OtherFile& other : others_) {
    other.file.reset();
    remove_if_exists(files_, other.temporary);
  }
}

// Whether the checkpoint that was set aside has the file of that path.
bool BundleWriter::is_aside(const std::string& path) const {
  const std::string aside = aside_prefix(prefix_);
  return files_.exists(path.starts_with(prefix_) ? aside + path.substr(prefix_.size()) : index_path(aside));
}

void BundleWriter::undo() {
  if (!prefix_touched_) return remove_temporaries();
  remove_temporary_files();
  check_directory_owner(files_, prefix_);
  take_names_back();
  files_.sync_directory(directory_);
  remove_if_exists(files_, index_temporary_);
}

void BundleWriter::take_names_back() {
  if (files_.exists(index_path(prefix_))) return drop_aside(files_, prefix_);
  for (const Shard& shard : shards_) {
    if (!is_aside(shard.path)) remove_if_exists(files_, shard.path);
  }
  for (const OtherFile& other : others_) {
    if (!is_aside(other.path)) remove_if_exists(files_, other.path);
  }
  if (files_.exists(index_path(aside_prefix(prefix_)))) put_back(files_, prefix_);
}

uint64_t BundleWriter::data_bytes() const {
  uint64_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.offset;
  return bytes;
}

}  // namespace longhaul
