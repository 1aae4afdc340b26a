#include "tests/soak/hostile_files.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/files/file.h"
#include "tests/soak/damage.h"

namespace longhaul::soak {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNotes = "notes.txt";
constexpr const char* kNotesText = "learning rate 0.002 was best\n";
constexpr size_t kLongLine = 3'000'000;

void copy_checkpoint(const std::string& from, const std::string& to) {
  for (const auto& path : {index_path(from), data_path(from, 0, 1), meta_graph_filename(from)}) {
    if (fs::exists(path)) fs::copy_file(path, to + path.substr(from.size()));
  }
}

std::string text_or(const std::string& path, const std::string& otherwise) {
  return fs::exists(path) ? read_file(FileSystem::real(), path) : otherwise;
}

// Its time stays: what is younger than the checkpoints says that somebody chose one of them.
void edit(const std::string& path, const std::string& text) {
  const auto time = fs::last_write_time(path);
  overwrite(path, text);
  fs::last_write_time(path, time);
}

// Before the first line that begins so; nothing where there is none.
bool insert_before(std::string& text, const std::string& beginning, const std::string& line) {
  const size_t place = text.find(beginning);
  if (place == text.npos) return false;
  text.insert(place, line);
  return true;
}

}  // namespace

std::map<std::string, std::string> contents_below(const std::string& directory) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    contents[fs::relative(entry.path(), directory)] = read_file(FileSystem::real(), entry.path());
  }
  return contents;
}

std::string first_difference(const std::map<std::string, std::string>& before,
                             const std::map<std::string, std::string>& after) {
  for (const auto& [path, bytes] : before) {
    if (!after.contains(path)) return path + " is gone";
    if (after.at(path) != bytes) return path + " has changed";
  }
  for (const auto& [path, bytes] : after) {
    if (!before.contains(path)) return path + " is new";
  }
  return "";
}

Bystanders::Bystanders(std::string directory, const std::string& checkpoint) : directory_(std::move(directory)) {
  fs::create_directories(directory_ + "/chapters");
  overwrite(directory_ + "/thesis.tex", "\\section{Results}\n");
  overwrite(directory_ + "/chapters/1.tex", "\\section{Introduction}\n");
  overwrite(directory_ + "/" + kNotes, kNotesText);
  copy_checkpoint(checkpoint, directory_ + "/model.ckpt-7");
  copy_checkpoint(checkpoint, directory_ + "/model.ckpt-9");
  fs::resize_file(data_path(directory_ + "/model.ckpt-9", 0, 1), 100);
  for (const int step : {1, 2, 3})
    overwrite(fmt::format("{}/model.ckpt-{}.index.corrupt", directory_, step), "damaged");
  contents_ = contents_below(directory_);
}

void Bystanders::join(const std::string& training) const {
  fs::create_directories(training);
  overwrite(training + "/" + kNotes, kNotesText);
}

void Bystanders::check(const std::string& training) const {
  const std::string difference = first_difference(contents_, contents_below(directory_));
  if (!difference.empty()) fail(fmt::format("in {}, where no run trains, {}", directory_, difference));
  if (text_or(training + "/" + kNotes, "") != kNotesText) fail(fmt::format("{} in {} was changed", kNotes, training));
  for (const auto& entry : fs::directory_iterator(fs::path(directory_).parent_path())) {
    const std::string path = entry.path(), name = entry.path().filename();
    const bool is_ours = path == directory_ || path == training || name.starts_with("undisturbed") ||
                         path == training + ".output" || path == training + ".output.err";
    if (!is_ours) fail(fmt::format("{} is new, next to the directory of the run", path));
  }
}

std::string Bystanders::some_name(const std::string& training, Random& random) const {
  static constexpr std::array kNames{"thesis.tex", "chapters/1.tex", "notes.txt", "model.ckpt-7", "model.ckpt-9"};
  const std::string name = kNames[below(random, kNames.size())];
  const std::string directory = fs::path(directory_).filename();
  switch (below(random, 4)) {
    case 0: return directory_ + "/" + name;
    case 1: return fmt::format("../{}/{}", directory, name);
    case 2: return fmt::format("./../{}/../{}/{}", fs::path(training).filename().string(), directory, name);
    default: return kNotes;
  }
}

std::string Bystanders::name_in_retention_file(const std::string& training, Random& random) const {
  static constexpr std::array kBeginnings{"fallen_out ", "", "fallen_out metric 0.5 ", "pinned fallen_out ", "pinned "};
  const std::string path = retention_path(training);
  std::string text = text_or(path, "longhaul retention 1\n");
  if (below(random, 4) == 0) {
    overwrite(path, text + "fallen_out checkpoint ../" + std::string(kLongLine, 'x') + "\n");
    return "line of three million bytes in the retention file";
  }
  text += fmt::format("{}checkpoint {}\n", kBeginnings[below(random, kBeginnings.size())], some_name(training, random));
  overwrite(path, text);
  return "name of a foreign file in the retention file";
}

// As the oldest, which is to be deleted first; as one that is being deleted; or a damaged one as the latest.
std::string Bystanders::name_in_state_file(const std::string& training, Random& random) const {
  const std::string path = training + "/" + kDefaultStateFile;
  if (read_checkpoint_state(FileSystem::real(), training).status != ReadCheckpointState::Status::kRead) return "";
  std::string text = read_file(FileSystem::real(), path);
  const std::string name = some_name(training, random);
  switch (below(random, 3)) {
    case 0: text += fmt::format("# being deleted: {}\n", name); break;
    case 1:
      text.replace(0, text.find('\n'), fmt::format("model_checkpoint_path: \"{}/model.ckpt-9\"", directory_));
      break;
    default:
      if (name.ends_with("model.ckpt-7")) return "";  // a whole one may be restored, wherever it is
      insert_before(text, "all_model_checkpoint_paths", fmt::format("all_model_checkpoint_paths: \"{}\"\n", name));
      insert_before(text, "all_model_checkpoint_timestamps", "all_model_checkpoint_timestamps: 1000\n");
  }
  edit(path, text);
  return "name of a foreign file in the state file";
}

}  // namespace longhaul::soak
