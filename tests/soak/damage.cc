#include "tests/soak/damage.h"

#include <filesystem>
#include <sstream>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"

namespace longhaul::soak {
namespace {

namespace fs = std::filesystem;

void flip_a_bit(const std::string& path, Random& random) {
  std::string bytes = read_file(FileSystem::real(), path);
  if (bytes.empty()) return;
  char& byte = bytes[below(random, bytes.size())];
  byte = static_cast<char>(byte ^ (1 << below(random, 8)));
  overwrite(path, bytes);
}

void cut(const std::string& path, Random& random) {
  fs::resize_file(path, below(random, fs::file_size(path)));
}

// The newest one, most of the time.
std::string victim(const Checkpoints& whole, Random& random) {
  auto chosen = std::prev(whole.end());
  if (below(random, 4) == 0) chosen = std::next(whole.begin(), static_cast<ptrdiff_t>(below(random, whole.size())));
  return chosen->second;
}

std::string damage_files_of(const std::string& prefix, Random& random) {
  const std::string data = data_path(prefix, 0, 1), index = index_path(prefix);
  switch (below(random, 6)) {
    case 0: return flip_a_bit(data, random), "bit flipped in data";
    case 1: return flip_a_bit(index, random), "bit flipped in an index";
    case 2: return cut(data, random), "data cut short";
    case 3: return cut(index, random), "index cut short";
    case 4: return fs::remove(data), "data removed";
    default: return overwrite(index, ""), "index emptied";
  }
}

std::string damage_neighbour(const std::string& path, const std::string& name, Random& random) {
  if (!fs::exists(path) || fs::file_size(path) == 0) return "";
  switch (below(random, 3)) {
    case 0: return fs::remove(path), name + " removed";
    case 1: return overwrite(path, "\xff not what it was {"), name + " overwritten";
    default: return overwrite(path, ""), name + " emptied";
  }
}

Damage damage_journal(const std::string& directory, const Bystanders&, Random& random) {
  const std::string path = directory + "/run.journal";
  if (!fs::exists(path) || fs::file_size(path) == 0) return {};
  switch (below(random, 3)) {
    case 0: return flip_a_bit(path, random), Damage{"bit flipped in the journal"};
    case 1: return cut(path, random), Damage{"journal cut short"};
    default: return fs::remove(path), Damage{"journal removed"};
  }
}

Damage damage_state_file(const std::string& directory, const Bystanders&, Random& random) {
  return {damage_neighbour(directory + "/checkpoint", "state file", random)};
}

Damage damage_checkpoint(const std::string& directory, const Bystanders&, Random& random) {
  const Checkpoints whole = intact_checkpoints(directory);
  if (whole.size() < 2) return {};
  return {.kind = damage_files_of(victim(whole, random), random), .is_checkpoint = true};
}

// Only of one that the state file names: another one without its index may be what a save has left.
Damage lose_newest_index(const std::string& directory, const Bystanders&, Random&) {
  const Checkpoints whole = intact_checkpoints(directory);
  if (whole.size() < 2) return {};
  const std::string newest = whole.rbegin()->second;
  if (!fs::exists(index_path(newest)) || !is_named_by_state_file(directory, newest)) return {};
  fs::remove(index_path(newest));
  return {.kind = "index of the newest lost", .is_checkpoint = true, .lost_index = newest};
}

Damage damage_retention_file(const std::string& directory, const Bystanders& bystanders, Random& random) {
  return {bystanders.name_in_retention_file(directory, random)};
}

Damage name_bystanders(const std::string& directory, const Bystanders& bystanders, Random& random) {
  return {bystanders.name_in_state_file(directory, random)};
}

}  // namespace

Checkpoints intact_checkpoints(const std::string& directory) {
  Checkpoints whole;
  for (const FoundCheckpoint& found : find_checkpoints(FileSystem::real(), directory, "model.ckpt")) {
    try {
      const BundleReader reader(FileSystem::real(), found.prefix);
      if (reader.verify().empty()) whole[found.step.value()] = found.prefix;
    } catch (const Error&) {
    }
  }
  return whole;
}

bool is_named_by_state_file(const std::string& directory, const std::string& prefix) {
  const CheckpointState state = read_checkpoint_state(FileSystem::real(), directory).state;
  for (const std::string& named : state.all_model_checkpoint_paths) {
    if (canonical_prefix(named) == canonical_prefix(prefix)) return true;
  }
  return false;
}

bool has_line_with(const std::string& log, const std::string& one, const std::string& other) {
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(one) != line.npos && line.find(other) != line.npos) return true;
  }
  return false;
}

void overwrite(const std::string& path, const std::string& bytes) {
  const auto file = FileSystem::real().create(path);
  file->append(bytes);
  file->close();
}

const std::vector<DamageCase>& damage_cases() {
  static const std::vector<DamageCase> cases{
      {"checkpoint", 6, "bits flipped, files cut short, removed or emptied", damage_checkpoint},
      {"state_file", 2, "the state file removed, overwritten or emptied", damage_state_file},
      {"journal", 2, "the journal damaged or removed", damage_journal},
      {"lost_index", 2, "the newest checkpoint's index lost", lose_newest_index},
      {"retention", 2, "checkpoint.retention names files that are not its own, in long lines too",
       damage_retention_file},
      {"state_names", 2, "the state file names files that are not its own", name_bystanders},
  };
  return cases;
}

}  // namespace longhaul::soak
