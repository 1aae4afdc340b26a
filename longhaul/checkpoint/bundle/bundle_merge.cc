#include "longhaul/checkpoint/bundle/bundle_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_entries.h"
#include "longhaul/checkpoint/bundle/bundle_proto.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/set_aside.h"
#include "longhaul/checkpoint/table/table_writer.h"
#include "longhaul/io/lock/directory_lock.h"

namespace longhaul {
namespace {

class Merge {
 public:
  Merge(FileSystem& files, const std::vector<std::string>& parts, const std::string& prefix)
      : files_(files), parts_(parts), prefix_(prefix), index_temporary_(temporary_path(index_path(prefix))) {}

  void read() {
    for (const std::string& part : parts_) read_part(part);
    header_.set_num_shards(static_cast<int32_t>(sources_.size()));
  }

  // Its data files would be removed to make room for themselves.
  void check_names() const {
    for (const std::string& part : parts_) {
      if (canonical_prefix(part) != canonical_prefix(prefix_)) continue;
      throw InvalidArgumentError(fmt::format("{} cannot be merged into itself: give the result another name", part));
    }
  }

  void commit() {
    check_directory_owner(files_, prefix_);
    files_.make_directories(directory_name(prefix_));
    write_index();
    files_.sync_directory(directory_name(prefix_));  // from now on it announces the data files (bundle_writer.h)
    if (files_.exists(index_path(prefix_))) set_aside(files_, prefix_);
    for (size_t i = 0; i < sources_.size(); ++i) {
      remove_if_exists(files_, target(i));
      files_.link(sources_[i], target(i));
    }
    files_.sync_directory(directory_name(prefix_));
    check_directory_owner(files_, prefix_);
    files_.rename(index_temporary_, index_path(prefix_));
    committed_ = true;
    files_.sync_directory(directory_name(prefix_));
  }

  void undo() {
    if (committed_) return;
    check_directory_owner(files_, prefix_);
    take_names_back();
    files_.sync_directory(directory_name(prefix_));
    remove_if_exists(files_, index_temporary_);
  }

  void remove_leftovers(bool remove_directories) {
    check_directory_owner(files_, prefix_);
    for (const std::string& part : parts_) check_directory_owner(files_, part);
    drop_aside(files_, prefix_);
    for (const std::string& path : data_files_of(files_, prefix_)) {
      bool ours = false;
      for (size_t i = 0; i < sources_.size(); ++i) ours = ours || path == target(i);
      if (!ours) files_.remove(path);
    }
    for (const std::string& part : parts_) remove_checkpoint(files_, part);
    for (const std::string& part : parts_) {
      const std::string directory = directory_name(part);
      if (remove_directories && files_.is_directory(directory) && files_.list(directory).empty())
        files_.remove(directory);
    }
  }

 private:
  void take_names_back() {
    if (files_.exists(index_path(prefix_))) return drop_aside(files_, prefix_);  // it was not set aside yet
    for (size_t i = 0; i < sources_.size(); ++i) remove_if_exists(files_, target(i));
    if (files_.exists(index_path(aside_prefix(prefix_)))) put_back(files_, prefix_);
  }

  std::string target(size_t i) const {
    return data_path(prefix_, static_cast<int>(i), static_cast<int>(sources_.size()));
  }

  void read_part(const std::string& part) {
    const std::string path = index_path(part);
    BundleEntries entries(files_.open(path), path);
    const proto::BundleHeaderProto& header = entries.header();
    check_header(header, part);
    const auto first_shard = static_cast<int32_t>(sources_.size());
    for (int i = 0; i < header.num_shards(); ++i) {
      sources_.push_back(data_path(part, i, header.num_shards()));
      if (!files_.exists(sources_.back())) throw NotFoundError("there is no data file " + sources_.back());
    }
    while (entries.next()) {
      proto::BundleEntryProto entry = entries.entry();
      if (entry.shard_id() < 0 || entry.shard_id() >= header.num_shards()) {
        throw DataLossError(fmt::format("{}: {} is in data file {}, but there are {} data files", path, entries.key(),
                                        entry.shard_id(), header.num_shards()));
      }
      const bool whole_of_slices = entry.slices_size() > 0;
      if (!whole_of_slices) entry.set_shard_id(first_shard + entry.shard_id());
      add_entry(entries.key(), entry, part);
    }
  }

  void check_header(const proto::BundleHeaderProto& header, const std::string& part) {
    if (sources_.empty()) {
      header_ = header;
      return;
    }
    if (header.endianness() != header_.endianness()) {
      throw InvalidArgumentError("Merging bundles with conflicting endianness: " + part);
    }
    if (header.version().SerializeAsString() != header_.version().SerializeAsString()) {
      throw InvalidArgumentError("Merging bundles with different format versions: " + part);
    }
  }

  void add_entry(const std::string& key, const proto::BundleEntryProto& entry, const std::string& part) {
    const auto [it, added] = entries_.emplace(key, entry);
    if (added) return;
    proto::BundleEntryProto& known = it->second;
    const bool same_tensor = known.slices_size() > 0 && entry.slices_size() > 0 && known.dtype() == entry.dtype() &&
                             shape_from(known.shape()) == shape_from(entry.shape());
    if (!same_tensor) {
      throw InvalidArgumentError(
          fmt::format("Duplicate tensor keyed by {} encountered, when merging prefix: {}", key, part));
    }
    for (const auto& slice : entry.slices()) *known.add_slices() = slice;
  }

  void write_index() {
    const auto file = files_.create(index_temporary_, FileSystem::IfExists::kFail);
    TableWriter table(*file);
    table.add("", header_.SerializeAsString());
    for (const auto& [key, entry] : entries_) table.add(key, entry.SerializeAsString());
    table.finish();
    file->sync();
    file->close();
  }

  FileSystem& files_;
  const std::vector<std::string>& parts_;
  const std::string prefix_;
  const std::string index_temporary_;
  bool committed_ = false;
  proto::BundleHeaderProto header_;
  std::vector<std::string> sources_;                        // the parts' data files, in order
  std::map<std::string, proto::BundleEntryProto> entries_;  // by key
};

}  // namespace

void merge_bundles(FileSystem& files, const std::vector<std::string>& parts, const std::string& prefix,
                   bool remove_directories) {
  if (parts.empty()) throw InvalidArgumentError("no checkpoints to merge into " + prefix);
  Merge merge(files, parts, prefix);
  merge.check_names();
  merge.read();
  try {
    merge.commit();
  } catch (...) {
    try {
      merge.undo();
    } catch (const DirectoryLostError&) {
      throw;
    } catch (const Error& error) {
      log_warning("{} was not merged, and cleaning up failed: {}", prefix, error.what());
    }
    throw;
  }
  try {
    merge.remove_leftovers(remove_directories);
  } catch (const DirectoryLostError&) {
    throw;
  } catch (const Error& error) {
    log_warning("{} was merged, but its parts could not be removed: {}", prefix, error.what());
  }
}

}  // namespace longhaul
