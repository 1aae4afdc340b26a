#include "longhaul/checkpoint/directory/crash_leftovers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "longhaul/base/excerpt.h"
#include "longhaul/base/log.h"
#include "longhaul/checkpoint/directory/checkpoint_copy.h"
#include "longhaul/checkpoint/directory/named_checkpoints.h"
#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/checkpoint/files/corrupt_set.h"
#include "longhaul/checkpoint/files/set_aside.h"
#include "longhaul/checkpoint/files/writes_under_way.h"
#include "longhaul/io/lock/directory_lock.h"

namespace longhaul {
namespace {

constexpr std::string_view kIndex = ".index", kMeta = ".meta", kTemporary = ".tmp";
constexpr size_t kTokenDigits = 16;
constexpr size_t kMostShown = 2000;  // bytes of names in a message

class Sweep {
 public:
  Sweep(FileSystem& files, const std::string& directory, const std::string& basename)
      : files_(files),
        directory_(directory),
        basename_(basename),
        names_(files.list(directory)),
        named_(named_checkpoints(files, directory)) {}

  // What has lost a file already is damaged, or cannot be seen at all.
  void finish_deletions() {
    for (const std::string& base : named_.marked_for_deletion) {
      const std::string prefix = join_path(directory_, base);
      if (!has_files(base) || is_under_way(base) || checkpoint_exists(files_, prefix)) continue;
      check_directory_owner(files_, prefix);
      remove_checkpoint(files_, prefix);
    }
  }

  void remove_uncommitted() {
    for (const std::string& base : announced_bases()) {
      if (!is_ours(base) || is_under_way(base) || has_index(base) || is_lost(base)) continue;
      if (files_.exists(join_path(directory_, index_path(base)))) continue;  // a save has ended meanwhile
      remove_files_of(base, "was never committed");
    }
    for (const std::string& base : bases_of_data()) {
      const std::string plain = without_aside(base);
      if (base == plain || !is_ours(plain) || is_under_way(plain)) continue;
      if (has_index(base) || !has(index_path(plain))) continue;
      remove_files_of(base, "is left over from a checkpoint that was replaced");
    }
  }

  std::vector<std::string> name_what_nobody_knows() const {
    const std::set<std::string> announced = announced_bases();
    std::vector<std::string> unknown;
    for (const std::string& name : names_) {
      const auto base = base_of_data_name(name);
      if (!base || !is_ours(without_aside(*base)) || announced.contains(*base) || is_known(*base)) continue;
      unknown.push_back(name);
    }
    if (unknown.empty()) return unknown;
    log_warning(
        "{} data files in {} have no index, and no save announced them. They are kept, but are not a checkpoint; "
        "restore their index files, or remove them by hand: {}",
        unknown.size(), directory_, excerpt(fmt::format("{}", fmt::join(unknown, ", ")), kMostShown));
    return unknown;
  }

  // What they announce is removed durably before them.
  void remove_temporaries() {
    if (has_removed_) files_.sync_directory(directory_);
    for (const std::string& name : names_) {
      if (is_temporary(name) && !is_own_temporary(name)) remove(name);
    }
    remove_stale_temporaries(files_, join_path(directory_, basename_));
  }

 private:
  std::set<std::string> bases_of_data() const {
    std::set<std::string> bases;
    for (const std::string& name : names_) {
      if (const auto base = base_of_data_name(name)) bases.insert(*base);
    }
    return bases;
  }

  // Of those whose index has been written, but has not got its name.
  std::set<std::string> announced_bases() const {
    std::set<std::string> bases;
    for (const std::string& name : names_) {
      if (const auto base = base_of_temporary_index(name)) bases.insert(*base);
    }
    for (const std::string& base : incoming_) bases.insert(base);
    return bases;
  }

  std::vector<std::string> bases_of_incoming() const {
    std::vector<std::string> bases;
    const std::string incoming = join_path(directory_, kIncoming);
    for (const std::string& name : names_in(files_, incoming)) {
      const bool is_index = name.ends_with(kIndex) && !files_.is_directory(join_path(incoming, name));
      if (is_index) bases.push_back(name.substr(0, name.size() - kIndex.size()));
    }
    return bases;
  }

  // Committed once, and by no save that is known to have taken its place.
  bool is_lost(const std::string& base) const {
    const bool is_replaced = std::find(incoming_.begin(), incoming_.end(), base) != incoming_.end();
    return named_.kept.contains(base) && !has_index(aside_prefix(base)) && !is_replaced;
  }

  // An index that moved while the names were read is looked for again.
  bool is_known(const std::string& base) const {
    const std::string plain = without_aside(base);
    return has_index(base) || (base != plain && has(index_path(plain))) || named_.kept.contains(base) ||
           named_.marked_for_deletion.contains(base) || committed_prefix(files_, join_path(directory_, base));
  }

  void remove_files_of(const std::string& base, std::string_view why) {
    std::vector<std::string> found = data_names_of(names_, base);
    if (has(meta_graph_filename(base))) found.push_back(meta_graph_filename(base));
    if (found.empty()) return;
    log_info("{} {}: its files are removed", join_path(directory_, base), why);
    for (const std::string& name : found) remove(name);
    has_removed_ = true;
  }

  bool is_ours(const std::string& base) const {
    const BaseAndStep parts = split_step(base);
    return basename_.empty() ? parts.step.has_value() : base == basename_ || (parts.step && parts.base == basename_);
  }

  // That are a checkpoint's: a meta graph alone may be anybody's.
  bool has_files(const std::string& base) const {
    return has(index_path(base)) || has(index_path(aside_prefix(base))) || !data_names_of(names_, base).empty() ||
           (is_ours(base) && has(meta_graph_filename(base)));
  }

  bool is_under_way(const std::string& base) const { return is_being_written(join_path(directory_, base)); }

  bool has(const std::string& name) const { return std::binary_search(names_.begin(), names_.end(), name); }
  bool has_index(const std::string& base) const { return has(index_path(base)) || is_half_corrupt(names_, base); }

  // What write_file_atomically() makes.
  bool is_temporary(const std::string& name) const {
    const size_t at = name.rfind(kTemporary);
    if (at == name.npos || name.size() != at + kTemporary.size() + kTokenDigits) return false;
    if (name.find_first_not_of("0123456789abcdef", at + kTemporary.size()) != name.npos) return false;
    const std::string target = name.substr(0, at);
    const std::string state = kDefaultStateFile;
    if (target == state || target == base_name(retention_path(directory_)) || target == "graph.pbtxt") return true;
    return target.ends_with(kMeta) && is_ours(target.substr(0, target.size() - kMeta.size()));
  }

  void remove(const std::string& name) {
    const std::string path = join_path(directory_, name);
    check_directory_owner(files_, path);
    remove_if_exists(files_, path);
  }

  FileSystem& files_;
  const std::string directory_, basename_;
  const std::vector<std::string> names_;
  const NamedCheckpoints named_;
  const std::vector<std::string> incoming_ = bases_of_incoming();
  bool has_removed_ = false;
};

}  // namespace

void remove_crash_leftovers(FileSystem& files, const std::string& directory, const std::string& basename) {
  if (!files.is_directory(directory)) return;
  Sweep sweep(files, directory, basename);
  sweep.finish_deletions();
  sweep.remove_uncommitted();
  sweep.remove_temporaries();
}

std::vector<std::string> data_without_index(FileSystem& files, const std::string& directory,
                                            const std::string& basename) {
  if (!files.is_directory(directory)) return {};
  return Sweep(files, directory, basename).name_what_nobody_knows();
}

}  // namespace longhaul
