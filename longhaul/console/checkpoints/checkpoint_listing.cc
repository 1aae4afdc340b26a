#include "longhaul/console/checkpoints/checkpoint_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "longhaul/base/size_text.h"
#include "longhaul/checkpoint/bundle/bundle_index.h"
#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/corrupt_set.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"
#include "longhaul/checkpoint/files/set_aside.h"
#include "longhaul/console/text/shown_text.h"
#include "longhaul/console/text/table.h"
#include "longhaul/console/text/times.h"

namespace longhaul::console {
namespace {

using State = ListedCheckpoint::State;

constexpr std::string_view kCorrupt = ".corrupt";

// 0: it was removed, or cannot be opened.
uint64_t size_of(FileSystem& files, const std::string& path) {
  try {
    return files.open(path)->size();
  } catch (const Error&) {
    return 0;
  }
}

double time_of(FileSystem& files, const std::string& path) {
  try {
    return files.modified_at(path);
  } catch (const Error&) {
    return 0;
  }
}

// "m-5" of the name of one of its files, wherever it is set aside; empty: it is none's.
std::string base_of(std::string name) {
  if (name.ends_with(kCorrupt)) name.erase(name.size() - kCorrupt.size());
  if (const auto base = base_of_data_name(name)) return without_aside(*base);
  for (const std::string_view ending : {".index", ".meta"}) {
    if (name.ends_with(ending)) return without_aside(name.substr(0, name.size() - ending.size()));
  }
  return "";
}

bool is_data(const std::string& name) {
  return base_of_data_name(name).has_value();
}

// What is wrong with a data file that should have at least so many bytes; empty: nothing.
std::string damage_of_data(FileSystem& files, const std::string& index, const std::string& path, uint64_t bytes) {
  try {
    const uint64_t size = files.open(path)->size();
    return size < bytes ? fmt::format("{} has {} bytes of {}", base_name(path), size, bytes) : "";
  } catch (const InvalidArgumentError&) {
    return base_name(path) + " is no regular file";
  } catch (const Error&) {
    // Who removes a checkpoint removes its index first.
    if (files.exists(index) && !files.exists(path)) return base_name(path) + " is a link that leads nowhere";
    throw;
  }
}

// Whether it is a link to itself. A link to nothing is not told from a file that was removed meanwhile.
bool is_circle(FileSystem& files, const std::string& path) {
  try {
    files.modified_at(path);
  } catch (const NotFoundError&) {
  } catch (const Error&) {
    return !files.exists(path);
  }
  return false;
}

// What is wrong with it, as far as its index and the sizes of its data files tell; empty: nothing.
std::string damage_of(FileSystem& files, const std::string& prefix) {
  try {
    const BundleIndex index(files, prefix);
    std::map<int, uint64_t> needed;  // by shard
    for (const auto& [key, piece] : index.pieces()) {
      if (!piece.entry.slices.empty()) continue;
      const bool is_possible = piece.offset >= 0 && piece.size >= 0;
      if (!is_possible) return fmt::format("{}: no file has such a place", index.where(key, piece));
      const uint64_t end = static_cast<uint64_t>(piece.offset) + static_cast<uint64_t>(piece.size);
      needed[piece.shard] = std::max(needed[piece.shard], end);
    }
    for (const auto& [shard, bytes] : needed) {
      const std::string path = data_path(index.committed(), shard, index.num_shards());
      std::string damage = damage_of_data(files, index_path(index.committed()), path, bytes);
      if (!damage.empty()) return damage;
    }
  } catch (const DataLossError& error) {
    return error.what();
  } catch (const Error&) {  // it was removed meanwhile, this user may not read it, or the library does not
  }
  return "";
}

class Listing {
 public:
  Listing(FileSystem& files, const std::string& directory)
      : files_(files), directory_(directory), names_(files.list(directory)) {}

  std::vector<ListedCheckpoint> take() {
    for (const FoundCheckpoint& found : find_checkpoints(files_, directory_, "")) {
      ListedCheckpoint& one = add(found.prefix, State::kComplete);
      one.modified_at = found.modified_at;
      one.damage = damage_of(files_, found.prefix);
      if (!one.damage.empty()) one.state = State::kDamaged;
    }
    for (const std::string& prefix : incomplete_checkpoints(files_, directory_, "")) add(prefix, State::kLacksData);
    for (const std::string& prefix : corrupt_sets(files_, directory_)) {
      add(prefix, State::kSetAside);
    }
    for (const std::string& name : names_) {
      if (!is_data(name)) continue;
      const std::string prefix = join_path(directory_, base_of(name));
      if (listed_.contains(prefix)) continue;
      const bool is_lost = is_circle(files_, index_path(prefix));
      ListedCheckpoint& one = add(prefix, is_lost ? State::kDamaged : State::kNoIndex);
      if (is_lost) one.damage = base_name(index_path(prefix)) + " is a link that leads nowhere";
    }
    mark_latest();
    mark_kept();
    add_sizes();
    std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
    return std::move(found_);
  }

 private:
  ListedCheckpoint& add(const std::string& prefix, State state) {
    listed_.insert(prefix);
    found_.push_back({.prefix = prefix, .step = split_step(base_name(prefix)).step, .state = state});
    return found_.back();
  }

  void mark_latest() {
    for (const std::string& candidate : checkpoint_candidates(files_, directory_)) {
      const std::string canonical = canonical_prefix(candidate);
      const auto one = std::find_if(found_.begin(), found_.end(), [&](const ListedCheckpoint& each) {
        return canonical_prefix(each.prefix) == canonical;
      });
      if (one != found_.end() && one->state == State::kDamaged) continue;  // a restart does not take it
      if (one != found_.end()) one->is_latest = true;
      return;
    }
  }

  void mark_kept() {
    const KeptCheckpoints kept = read_retention(files_, directory_);
    for (ListedCheckpoint& one : found_) {
      const auto it = std::find_if(kept.begin(), kept.end(), [&](const auto& entry) {
        return base_name(entry.first) == base_name(one.prefix) && one.state != State::kSetAside;
      });
      if (it == kept.end()) continue;
      one.is_pinned = it->second.pinned;
      one.metric = it->second.metric;
    }
  }

  void add_sizes() {
    std::map<std::pair<std::string, bool>, std::vector<std::string>> parts;  // by base, and whether they are .corrupt
    for (const std::string& name : names_) parts[{base_of(name), name.ends_with(kCorrupt)}].push_back(name);
    for (ListedCheckpoint& one : found_) {
      for (const std::string& name : parts[{base_name(one.prefix), one.state == State::kSetAside}]) {
        const std::string path = join_path(directory_, name);
        one.bytes += size_of(files_, path);
        if (one.state != State::kComplete) one.modified_at = std::max(one.modified_at, time_of(files_, path));
      }
    }
  }

  FileSystem& files_;
  const std::string directory_;
  const std::vector<std::string> names_;
  std::vector<ListedCheckpoint> found_;
  std::set<std::string> listed_;
};

const char* name_of(State state) {
  switch (state) {
    case State::kComplete: return "complete";
    case State::kLacksData: return "lacks data files";
    case State::kDamaged: return "damaged";
    case State::kSetAside: return "set aside";
    case State::kNoIndex: return "no index";
  }
  return "";
}

std::string remarks(const ListedCheckpoint& checkpoint) {
  std::vector<std::string> all;
  if (checkpoint.is_latest) all.emplace_back("latest");
  if (checkpoint.is_pinned) all.emplace_back("pinned");
  if (checkpoint.metric) all.push_back(fmt::format("metric {:.6g}", *checkpoint.metric));
  if (checkpoint.state == State::kLacksData) all.emplace_back("damaged: data files are missing");
  if (checkpoint.state == State::kDamaged) all.push_back("damaged: " + checkpoint.damage);
  if (checkpoint.state == State::kSetAside) all.emplace_back("damaged, set aside as .corrupt");
  if (checkpoint.state == State::kNoIndex) all.emplace_back("not committed: being written, or left by a crash");
  return fmt::format("{}", fmt::join(all, ", "));
}

bool is_damaged(const ListedCheckpoint& checkpoint) {
  return checkpoint.state == State::kLacksData || checkpoint.state == State::kDamaged ||
         checkpoint.state == State::kSetAside;
}

Json to_json(const ListedCheckpoint& checkpoint) {
  return {{"path", checkpoint.prefix},
          {"step", json_or_null(checkpoint.step)},
          {"state", name_of(checkpoint.state)},
          {"modified_at", checkpoint.modified_at > 0 ? Json(checkpoint.modified_at) : Json()},
          {"bytes", checkpoint.bytes},
          {"latest", checkpoint.is_latest},
          {"pinned", checkpoint.is_pinned},
          {"metric", json_or_null(checkpoint.metric)}};
}

Paint paint_of(const ListedCheckpoint& checkpoint) {
  if (is_damaged(checkpoint)) return Paint::kRed;
  if (checkpoint.state == State::kNoIndex) return Paint::kYellow;
  return checkpoint.is_latest ? Paint::kGreen : Paint::kPlain;
}

void list_directory(FileSystem& files, const std::string& directory, bool is_single, double now,
                    const Terminal& terminal, Report& report) {
  const std::vector<ListedCheckpoint> found = checkpoints_in(files, directory);
  Table table({{"checkpoint"}, {"step", Align::kRight}, {"saved", Align::kRight}, {"size", Align::kRight}, {""}});
  Json checkpoints = Json::array();
  uint64_t total = 0;
  for (const ListedCheckpoint& one : found) {
    table.add({Cell(base_name(one.prefix), paint_of(one)), one.step ? std::to_string(*one.step) : "",
               one.modified_at > 0 ? age_text(one.modified_at, now) : "", size_text(one.bytes), remarks(one)});
    checkpoints.push_back(to_json(one));
    total += one.bytes;
  }
  if (!is_single || found.empty()) report.text += shown(directory, 1000) + ":\n";
  report.text += found.empty() ? "no checkpoint\n" : table.text(terminal);
  const auto elsewhere = latest_elsewhere(files, directory);
  if (elsewhere) {
    report.text += fmt::format("a restart takes {}, which is not in this directory: the file {} there names it\n",
                               shown(*elsewhere, 1000), kDefaultStateFile);
  }
  const uint64_t room = files.free_bytes(directory);
  report.text += fmt::format("{} in {} checkpoint{}, {} free\n", size_text(total), found.size(),
                             found.size() == 1 ? "" : "s", size_text(room));
  report.json["directories"].push_back({{"path", directory},
                                        {"checkpoints", checkpoints},
                                        {"bytes", total},
                                        {"free_bytes", room},
                                        {"latest_elsewhere", json_or_null(elsewhere)}});
}

}  // namespace

std::optional<std::string> latest_elsewhere(FileSystem& files, const std::string& directory) {
  const auto latest = latest_checkpoint(files, directory);
  return latest && !lies_in(*latest, directory) ? latest : std::nullopt;
}

std::vector<ListedCheckpoint> checkpoints_in(FileSystem& files, const std::string& directory) {
  return Listing(files, directory).take();
}

Report list_checkpoints(FileSystem& files, const std::vector<std::string>& directories, double now,
                        const Terminal& terminal) {
  Report report{.json = json_of("ls")};
  report.json["directories"] = Json::array();
  const bool is_single = directories.size() == 1;
  for (const std::string& directory : directories) {
    try {
      list_directory(files, directory, is_single, now, terminal, report);
    } catch (const Error& error) {
      if (is_single) throw;
      report.text += fmt::format("{}:\n{}\n", shown(directory, 1000), shown(error.what(), 1000));
      report.json["directories"].push_back({{"path", directory}, {"error", error.what()}});
      report.is_fine = false;
    }
  }
  return report;
}

}  // namespace longhaul::console
