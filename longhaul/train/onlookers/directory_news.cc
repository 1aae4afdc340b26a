#include "longhaul/train/onlookers/directory_news.h"

#include <utility>

#include "longhaul/base/error.h"

namespace longhaul {

bool is_directory(FileSystem& files, const std::string& directory) {
  try {
    return files.is_directory(directory);
  } catch (const Error&) {
    return false;
  }
}

DirectoryNews::DirectoryNews(std::string directory, Coordinator coord)
    : directory_(std::move(directory)), coord_(std::move(coord)) {}

void DirectoryNews::forget(FileSystem& files) {
  const std::string place = nearest(files);
  if (!watch_ || !watch_->is_watching() || watched_ != place) {
    watched_ = place;
    watch_.reset();
    watch_ = std::make_unique<DirectoryWatch>(place, [this](const DirectoryChange& change) { note(change); });
  }
  has_some_ = false;
}

void DirectoryNews::wait(Seconds until) {
  // wait: polls: a network file system does not tell of changes, nor a killed chief of its death
  coord_.wait_for_stop_or([this] { return has_some_.load(); }, until - coord_.clock().now());
}

// On the watch's thread.
void DirectoryNews::note(const DirectoryChange& change) {
  if (change.name.starts_with("chief.owner") && !change.is_removal) return;
  has_some_ = true;
  coord_.notify();
}

std::string DirectoryNews::nearest(FileSystem& files) const {
  std::string place = directory_;
  while (!is_directory(files, place) && place != directory_name(place)) place = directory_name(place);
  return place;
}

}  // namespace longhaul
