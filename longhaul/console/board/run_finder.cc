#include "longhaul/console/board/run_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/error.h"
#include "longhaul/console/board/board_limits.h"
#include "longhaul/io/files/canonical_directory.h"

namespace longhaul::console {
namespace {

constexpr int kDeepest = 3;
constexpr size_t kMostLooks = 2000;  // at directories, in all

bool is_of_training(std::string_view name) {
  return name == "run.journal" || name == "checkpoint" || name.ends_with(".index") ||
         name.find("tfevents") != name.npos;
}

struct Contents {
  bool has_training = false;
  std::vector<std::string> directories{};  // to look into, links last: names of their own are better
};

// By the kinds of files that the directory itself has: none of the thousands of files of a training is looked at.
Contents contents_of(const std::string& directory) {
  Contents contents;
  std::vector<std::pair<bool, std::string>> found;
  std::error_code error, unknown;
  const AboveStdio above;
  std::filesystem::directory_iterator it(directory, error), end;
  for (; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    const bool is_directory = it->is_directory(unknown);
    if (is_directory && !name.starts_with('.')) found.emplace_back(it->is_symlink(unknown), std::move(name));
    if (!is_directory) contents.has_training = contents.has_training || is_of_training(name);
  }
  if (error) throw_errno(error.value(), "list " + directory);
  std::sort(found.begin(), found.end());
  for (auto& [is_link, name] : found) contents.directories.push_back(std::move(name));
  return contents;
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
      if (!files_.exists(root_)) return note(root_ + " is not there yet: it is waited for");
      if (!files_.is_directory(root_)) return note(root_ + " is no directory");
      const size_t before = seen_;
      descend(root_, 0);
      if (seen_ == before && looks_ <= kMostLooks) {
        note(root_ + " has no training yet: no event file, no journal and no checkpoint");
      }
    } catch (const std::exception& error) {
      note(error.what());
    }
  }

  FoundRuns take() {
    if (notes_left_out_ > 0) found_.notes.push_back(fmt::format("{} more notes are left out", notes_left_out_));
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
  // Where a link leads to what is known, it is not looked at again.
  void descend(const std::string& directory, int depth) {
    const std::string place = canonical_directory(directory);
    const auto [visited, is_new] = visited_.emplace(place, depth);
    if (!is_new && visited->second <= depth) {
      if (depth == 0) ++seen_;
      return;
    }
    visited->second = depth;
    if (++looks_ > kMostLooks) return;
    const Contents contents = contents_of(directory);
    if (contents.has_training) add(directory, place);
    if (depth == kDeepest) return;
    for (const std::string& name : contents.directories) {
      try {
        descend(join_path(directory, name), depth + 1);
      } catch (const NotFoundError&) {
      } catch (const Error& error) {
        note(error.what());
      }
    }
  }

  void note(const std::string& text) {
    if (found_.notes.size() < kMostNotes) {
      found_.notes.push_back(text);
    } else {
      ++notes_left_out_;
    }
  }

  void add(const std::string& directory, const std::string& place) {
    ++seen_;
    if (!known_.insert(place).second) return;
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
  std::set<std::string> known_;         // runs, by their places
  std::map<std::string, int> visited_;  // directories, by their places, with their depths
  size_t seen_ = 0;                     // runs that are there, found before or not
  size_t looks_ = 0, left_out_ = 0, notes_left_out_ = 0;
};

}  // namespace

FoundRuns find_runs(FileSystem& files, const std::vector<std::string>& directories) {
  Search search(files, directories.size() == 1);
  for (const std::string& directory : directories) search.look(directory);
  return search.take();
}

}  // namespace longhaul::console
