#include "longhaul/checkpoint/bundle_index.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/checkpoint/bundle_format.h"
#include "longhaul/checkpoint/bundle_proto.h"
#include "longhaul/checkpoint/checkpoint_files.h"
#include "longhaul/checkpoint/set_aside.h"
#include "longhaul/checkpoint/table.h"
#include "longhaul/checkpoint/v1_checkpoint.h"
#include "longhaul/io/crc32c.h"

namespace longhaul {
namespace {

// Keys share their beginnings in the file; an index of honest names does not grow by more than this when they are spelt
// out.
uint64_t most_key_bytes(uint64_t file_size) {
  return (uint64_t{1} << 20) + 64 * file_size;
}

void check_version(const proto::VersionDef& version, const std::string& path) {
  constexpr int kOurs = bundle_format::kVersion;
  if (version.min_consumer() > kOurs) {
    throw InvalidArgumentError(
        fmt::format("{}: Checkpoint min consumer version {} above current version {}: a newer reader is needed", path,
                    version.min_consumer(), kOurs));
  }
  if (version.producer() < bundle_format::kMinProducer) {
    throw InvalidArgumentError(fmt::format("{}: Checkpoint producer version {} below min producer {} supported", path,
                                           version.producer(), bundle_format::kMinProducer));
  }
  const auto& bad = version.bad_consumers();
  if (std::find(bad.begin(), bad.end(), kOurs) != bad.end()) {
    throw InvalidArgumentError(fmt::format("{}: Checkpoint disallows consumer version {}", path, kOurs));
  }
}

}  // namespace

BundleIndex::BundleIndex(FileSystem& files, const std::string& prefix) : prefix_(strip_file_scheme(prefix)) {
  auto file = open(files);
  const std::string path = index_path(committed_);
  const Table table(std::move(file), path);
  auto cursor = table.seek("");
  if (!cursor.valid() || !cursor.key().empty()) throw DataLossError(path + ": the index has no header");
  read_header(cursor.value(), path);
  uint64_t key_bytes = 0;
  for (cursor.next(); cursor.valid(); cursor.next()) {
    key_bytes += cursor.key().size();
    if (key_bytes > most_key_bytes(table.file_size()))
      throw DataLossError(path + ": the keys take more than is credible");
    add_entry(cursor.key(), cursor.value(), path);
  }
  add_up_slices();
}

// While another checkpoint of that name is committed, the index is first in one place, then in the other, then in the
// first.
std::unique_ptr<const ReadableFile> BundleIndex::open(FileSystem& files) {
  for (const std::string& place : {prefix_, aside_prefix(prefix_), prefix_}) {
    try {
      auto file = files.open(index_path(place));
      committed_ = place;
      return file;
    } catch (const NotFoundError&) {
    }
  }
  throw_no_checkpoint(files, prefix_,
                      fmt::format("there is no checkpoint {} (no file {})", prefix_, index_path(prefix_)));
}

void BundleIndex::read_header(std::string_view bytes, const std::string& path) {
  proto::BundleHeaderProto header;
  if (!header.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw DataLossError(path + ": the header cannot be parsed");
  }
  check_version(header.version(), path);
  if (header.num_shards() < 1) throw DataLossError(fmt::format("{}: {} data files", path, header.num_shards()));
  num_shards_ = header.num_shards();
  big_endian_ = header.endianness() == proto::BundleHeaderProto::BIG;
}

void BundleIndex::add_entry(const std::string& key, std::string_view bytes, const std::string& path) {
  proto::BundleEntryProto message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw DataLossError(fmt::format("{}: the entry of {} cannot be parsed", path, key));
  }
  StoredPiece piece{.shard = message.shard_id(), .offset = message.offset(), .size = message.size()};
  piece.crc = unmask_crc32c(message.crc32c());
  piece.entry.dtype = message.dtype();
  piece.entry.shape = shape_from(message.shape());
  piece.entry.bytes = static_cast<uint64_t>(std::max<int64_t>(message.size(), 0));
  for (const auto& slice : message.slices()) piece.entry.slices.push_back(slice_from(slice));
  pieces_.emplace_hint(pieces_.end(), key, std::move(piece));
}

void BundleIndex::add_up_slices() {
  for (auto& [key, piece] : pieces_) {
    for (const TensorSlice& slice : piece.entry.slices) {
      const auto stored = pieces_.find(slice_key(key, slice));
      if (stored != pieces_.end()) piece.entry.bytes += stored->second.entry.bytes;
    }
  }
}

const StoredPiece& BundleIndex::piece(std::string_view key) const {
  const auto it = pieces_.find(key);
  if (it == pieces_.end()) throw NotFoundError(fmt::format("Key {} not found in checkpoint {}", key, prefix_));
  return it->second;
}

std::string BundleIndex::where(std::string_view name) const {
  return fmt::format("{}: tensor {}", committed_, name);
}

std::string BundleIndex::where(std::string_view name, const StoredPiece& piece) const {
  if (piece.shard < 0 || piece.shard >= num_shards_) return where(name);
  return fmt::format("{}: tensor {}", data_path(committed_, piece.shard, num_shards_), name);
}

}  // namespace longhaul
