#include "longhaul/checkpoint/bundle/written_entries.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_format.h"
#include "longhaul/checkpoint/bundle/bundle_proto.h"
#include "longhaul/checkpoint/table/table_writer.h"

namespace longhaul {
namespace {

std::string header(size_t num_shards) {
  proto::BundleHeaderProto header;
  header.set_num_shards(static_cast<int32_t>(num_shards));
  header.set_endianness(proto::BundleHeaderProto::LITTLE);
  header.mutable_version()->set_producer(bundle_format::kVersion);
  return header.SerializeAsString();
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
      "uint32 and uint64. If TensorFlow is to read these checkpoints, store it in one piece or as another dtype",
      name, dtype_name(dtype));
}

}  // namespace

void WrittenEntries::check_new(const std::string& name) const {
  if (name.empty()) throw InvalidArgumentError(fmt::format("saving {}: a tensor has no name", prefix_));
  if (entries_.contains(name)) throw InvalidArgumentError(fmt::format("saving {}: duplicate key: {}", prefix_, name));
}

void WrittenEntries::add(const std::string& key, proto::BundleEntryProto entry, size_t shard) {
  entry.set_shard_id(static_cast<int32_t>(shard));
  entries_[key] = std::move(entry);
}

void WrittenEntries::add_slice(const std::string& name, const Shape& full_shape, const TensorSlice& slice, DType dtype,
                               const Shape& shape) {
  const TensorSlice box = slice.within(full_shape);
  if (shape != shape_of(box)) {
    throw InvalidArgumentError(fmt::format("saving {}: slice {} of {} has shape {}, but the tensor has shape {}",
                                           prefix_, slice.to_string(), name, shape_of(box).to_string(),
                                           shape.to_string()));
  }
  auto& entry = whole_entry(name, full_shape, dtype);
  for (const TensorSlice& other : slices_[name]) {
    if (common_elements(box, other) == 0) continue;
    throw InvalidArgumentError(
        fmt::format("saving {}: slices {} and {} of {} overlap", prefix_, other.to_string(), slice.to_string(), name));
  }
  warn_of_unreadable_slices(name, dtype);
  slices_[name].push_back(box);
  set_slice(*entry.add_slices(), slice);
}

proto::BundleEntryProto& WrittenEntries::whole_entry(const std::string& name, const Shape& full_shape, DType dtype) {
  if (!slices_.contains(name)) {
    check_new(name);
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

void WrittenEntries::write(WritableFile& file, size_t num_shards) const {
  TableWriter table(file);
  table.add("", header(num_shards));
  for (const auto& [key, entry] : entries_) table.add(key, entry.SerializeAsString());
  table.finish();
}

}  // namespace longhaul
