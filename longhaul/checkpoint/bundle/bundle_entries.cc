#include "longhaul/checkpoint/bundle/bundle_entries.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/proto/parsed_size.h"
#include "longhaul/proto/wire_reader.h"

namespace longhaul {
namespace {

constexpr uint64_t kPieceBytes = 256;  // what an entry without shape and slices takes, beside its key

// The fields of BundleEntryProto, TensorShapeProto and TensorSliceProto.
constexpr uint32_t kShape = 2, kSlices = 7, kDim = 2, kExtent = 1;

// How often `number` is a field of a message; false: the bytes are malformed.
bool count_fields(std::string_view message, uint32_t number, uint64_t& count) {
  return for_each_field(message, number, [&](std::string_view) { return ++count, true; });
}

}  // namespace

BundleEntries::BundleEntries(std::unique_ptr<const ReadableFile> file, const std::string& path)
    : path_(path), table_(std::move(file), path), cursor_(table_.seek("")) {
  if (!cursor_.valid() || !cursor_.key().empty()) throw DataLossError(path + ": the index has no header");
  charge(cursor_.value());
  if (!header_.ParseFromArray(cursor_.value().data(), static_cast<int>(cursor_.value().size()))) {
    throw DataLossError(path + ": the header cannot be parsed");
  }
}

bool BundleEntries::next() {
  cursor_.next();
  if (!cursor_.valid()) return false;
  const std::string_view bytes = cursor_.value();
  if (key().starts_with('\0')) ++stored_slices_;
  check_dims(bytes);
  check_slices(bytes);
  charge(bytes);
  if (!entry_.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) refuse("it cannot be parsed");
  return true;
}

void BundleEntries::check_dims(std::string_view bytes) {
  uint64_t dims = 0;
  if (!for_each_field(bytes, kShape, [&](std::string_view shape) { return count_fields(shape, kDim, dims); })) {
    refuse("it cannot be parsed");
  }
  if (dims > kMostDims) refuse(fmt::format("it claims {} dimensions, but at most {} are possible", dims, kMostDims));
}

void BundleEntries::check_slices(std::string_view bytes) {
  uint64_t longest = 0;
  const bool whole = for_each_field(bytes, kSlices, [&](std::string_view slice) {
    uint64_t extents = 0;
    ++claimed_slices_;
    if (!count_fields(slice, kExtent, extents)) return false;
    longest = std::max(longest, extents);
    return true;
  });
  if (!whole) refuse("it cannot be parsed");
  if (longest > kMostDims) {
    refuse(fmt::format("it claims a slice of {} dimensions, but at most {} are possible", longest, kMostDims));
  }
  if (claimed_slices_ > stored_slices_ + kMostMissingSlices) {
    refuse(fmt::format("up to this entry tensors claim {} slices, but {} are stored", claimed_slices_, stored_slices_));
  }
}

// Of the header and then of each entry, before it is parsed.
void BundleEntries::charge(std::string_view bytes) {
  const uint64_t most = kBaseBytes + kBytesPerByte * table_.file_size();
  const auto& type = key().empty() ? *header_.GetDescriptor() : *entry_.GetDescriptor();
  const auto size = proto::parsed_size(type, bytes, 100, most);
  if (!size) refuse("it cannot be parsed");
  taken_bytes_ += kPieceBytes + key().size() + *size;
  if (taken_bytes_ <= most) return;
  refuse(fmt::format("the entries up to this one take more than {} bytes of memory, too much for an index of {} bytes",
                     most, table_.file_size()));
}

void BundleEntries::refuse(const std::string& why) const {
  if (key().empty()) throw DataLossError(fmt::format("{}: the header: {}", path_, why));
  throw DataLossError(fmt::format("{}: the entry of {}: {}", path_, shown_name(key()), why));
}

std::string shown_name(std::string_view name) {
  constexpr size_t kMost = 1000;
  return name.size() <= kMost ? std::string(name) : fmt::format("{}...", name.substr(0, kMost));
}

}  // namespace longhaul
