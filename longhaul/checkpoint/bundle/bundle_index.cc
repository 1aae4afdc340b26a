#include "longhaul/checkpoint/bundle/bundle_index.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/checkpoint/bundle/bundle_entries.h"
#include "longhaul/checkpoint/bundle/bundle_format.h"
#include "longhaul/checkpoint/bundle/bundle_proto.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/set_aside.h"
#include "longhaul/checkpoint/files/v1_checkpoint.h"
#include "longhaul/checkpoint/table/table.h"
#include "longhaul/io/records/crc32c.h"

namespace longhaul {
namespace {

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
  BundleEntries entries(std::move(file), path);
  read_header(entries.header(), path);
  while (entries.next()) add_entry(entries.key(), entries.entry());
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
    } catch (const InvalidArgumentError& error) {  // no file, but a directory, a pipe, a socket
      throw DataLossError(error.what());
    }
  }
  throw_no_checkpoint(files, prefix_,
                      fmt::format("there is no checkpoint {} (no file {})", prefix_, index_path(prefix_)));
}

void BundleIndex::read_header(const proto::BundleHeaderProto& header, const std::string& path) {
  check_version(header.version(), path);
  if (header.num_shards() < 1)
    throw DataLossError(fmt::format("{}: the header claims {} data files", path, header.num_shards()));
  num_shards_ = header.num_shards();
  big_endian_ = header.endianness() == proto::BundleHeaderProto::BIG;
}

void BundleIndex::add_entry(const std::string& key, const proto::BundleEntryProto& message) {
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
  if (it == pieces_.end())
    throw NotFoundError(fmt::format("Key {} not found in checkpoint {}", shown_name(key), prefix_));
  return it->second;
}

std::string BundleIndex::where(std::string_view name) const {
  return fmt::format("{}: tensor {}", committed_, shown_name(name));
}

std::string BundleIndex::where(std::string_view name, const StoredPiece& piece) const {
  if (piece.shard < 0 || piece.shard >= num_shards_) return where(name);
  return fmt::format("{}: tensor {}", data_path(committed_, piece.shard, num_shards_), shown_name(name));
}

}  // namespace longhaul
