#include "longhaul/console/board/run_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "longhaul/base/error.h"
#include "longhaul/console/board/board_limits.h"

namespace longhaul::console {
namespace {

constexpr int kDeepest = 3;
constexpr size_t kMostLooks = 2000;  // at directories, in all

bool is_of_training(std::string_view name) {
  return name == "run.journal" || name == "checkpoint" || name.ends_with(".index") ||
         name.find("tfevents") != name.npos;
}

// What may be a directory with trainings, by its name: of the thousands of files of a training none is looked at.
bool may_contain_runs(std::string_view name) {
  constexpr std::array<std::string_view, 4> kFiles{".index", ".meta", ".pbtxt", ".corrupt"};
  const bool is_file = std::any_of(kFiles.begin(), kFiles.end(), [&](auto ending) { return name.ends_with(ending); });
  return !name.starts_with('.') && !is_file && !is_of_training(name) && name.find(".data-") == name.npos;
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

class Search {
 public:
  Search(FileSystem& files, bool is_single) : files_(files), is_single_(is_single) {}

  void look(const std::string& root) {
    root_ = without_slashes(root);
    try {
      if (!files_.exists(root_)) return found_.notes.push_back(root_ + " is not there yet: it is waited for");
      if (!files_.is_directory(root_)) return found_.notes.push_back(root_ + " is no directory");
      const size_t before = found_.runs.size();
      descend(root_, 0);
      if (found_.runs.size() == before && left_out_ == 0) {
        found_.notes.push_back(root_ + " has no training yet: no event file, no journal and no checkpoint");
      }
    } catch (const Error& error) {
      found_.notes.emplace_back(error.what());
    }
  }

  FoundRuns take() {
    if (left_out_ > 0) {
      found_.notes.push_back(fmt::format("{} runs are left out: a board shows {} at most", left_out_, kMostRuns));
    }
    if (looks_ > kMostLooks) {
      found_.notes.push_back(
          fmt::format("only {} directories were searched for runs: name those that are meant", kMostLooks));
    }
    return std::move(found_);
  }

 private:
  void descend(const std::string& directory, int depth) {
    if (++looks_ > kMostLooks) return;
    const std::vector<std::string> names = files_.list(directory);
    if (std::any_of(names.begin(), names.end(), is_of_training)) add(directory);
    if (depth == kDeepest) return;
    for (const std::string& name : names) {
      if (!may_contain_runs(name)) continue;
      const std::string path = join_path(directory, name);
      try {
        if (files_.is_directory(path)) descend(path, depth + 1);
      } catch (const NotFoundError&) {
      } catch (const Error& error) {
        found_.notes.emplace_back(error.what());
      }
    }
  }

  void add(const std::string& directory) {
    if (!known_.insert(directory).second) return;
    if (found_.runs.size() < kMostRuns) {
      found_.runs.push_back({name_of(directory), directory});
    } else {
      ++left_out_;
    }
  }

  std::string name_of(const std::string& directory) const {
    if (!is_single_) return directory;
    return directory == root_ ? base_name(directory) : directory.substr(root_.size() + (root_.ends_with('/') ? 0 : 1));
  }

  FileSystem& files_;
  const bool is_single_;
  std::string root_;
  FoundRuns found_;
  std::set<std::string> known_;
  size_t looks_ = 0, left_out_ = 0;
};

}  // namespace

FoundRuns find_runs(FileSystem& files, const std::vector<std::string>& directories) {
  Search search(files, directories.size() == 1);
  for (const std::string& directory : directories) search.look(directory);
  return search.take();
}

}  // namespace longhaul::console
