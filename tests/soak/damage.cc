#include "tests/soak/damage.h"

#include <filesystem>
#include <vector>

#include "longhaul/checkpoint/bundle_reader.h"
#include "longhaul/checkpoint/checkpoint_files.h"

namespace longhaul::soak {
namespace {

namespace fs = std::filesystem;

size_t below(Random& random, size_t limit) {
  return static_cast<size_t>(random() % limit);
}

void overwrite(const std::string& path, const std::string& bytes) {
  const auto file = FileSystem::real().create(path);
  file->append(bytes);
  file->close();
}

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
std::string victim(const std::map<int64_t, std::string>& whole, Random& random) {
  auto chosen = std::prev(whole.end());
  if (below(random, 4) == 0) chosen = std::next(whole.begin(), static_cast<ptrdiff_t>(below(random, whole.size())));
  return chosen->second;
}

std::string damage_checkpoint(const std::string& prefix, Random& random) {
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

std::string damage_journal(const std::string& path, Random& random) {
  if (!fs::exists(path) || fs::file_size(path) == 0) return "";
  switch (below(random, 3)) {
    case 0: return flip_a_bit(path, random), "bit flipped in the journal";
    case 1: return cut(path, random), "journal cut short";
    default: return fs::remove(path), "journal removed";
  }
}

}  // namespace

std::map<int64_t, std::string> whole_checkpoints(const std::string& directory) {
  std::map<int64_t, std::string> whole;
  for (const FoundCheckpoint& found : find_checkpoints(FileSystem::real(), directory, "model.ckpt")) {
    try {
      const BundleReader reader(FileSystem::real(), found.prefix);
      if (reader.verify().empty()) whole[found.step.value()] = found.prefix;
    } catch (const Error&) {
    }
  }
  return whole;
}

std::string damage_something(const std::string& directory, Random& random, bool& is_checkpoint) {
  is_checkpoint = false;
  switch (below(random, 5)) {
    case 0: return damage_neighbour(directory + "/checkpoint", "state file", random);
    case 1: return damage_journal(directory + "/run.journal", random);
    default: break;
  }
  const std::map<int64_t, std::string> whole = whole_checkpoints(directory);
  if (whole.size() < 2) return "";
  is_checkpoint = true;
  return damage_checkpoint(victim(whole, random), random);
}

}  // namespace longhaul::soak
