#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "longhaul/base/thread.h"

namespace longhaul {

// A change of a file in a watched directory: written and closed, renamed to this name, or removed; or a new directory
// in it.
struct DirectoryChange {
  std::string name;  // the file's base name; empty: unknown, so anything may have changed
  bool is_removal = false;
};

// Notices changes in a directory of the real file system (inotify), so that nobody has to look at intervals. It is no
// guarantee: a network file system does not tell of what another machine does there, and a system may have no watches
// left. So whoever relies on it also looks now and then.
class DirectoryWatch {
 public:
  enum class Notices {
    kWholeFiles,  // that are closed after writes, get their names, or are removed
    kWrites,      // these, and each write to a file that stays open: what is appended to a log
  };
  // Calls `changed` on the watch's own thread ("lh-watch"), from now on until the destructor. It must be fast and must
  // not throw. A directory that does not exist, or cannot be watched, is not an error: see is_watching().
  DirectoryWatch(const std::string& directory, std::function<void(const DirectoryChange&)> changed,
                 Notices notices = Notices::kWholeFiles);
  ~DirectoryWatch();
  DirectoryWatch(const DirectoryWatch&) = delete;
  DirectoryWatch& operator=(const DirectoryWatch&) = delete;

  // False: the directory could not be watched, or it has been removed, moved or unmounted since. Any thread.
  bool is_watching() const { return is_watching_; }

 private:
  void open(const std::string& directory, Notices notices);
  void close_all();
  void watch();
  bool read_changes();  // false: the watch has ended

  const std::function<void(const DirectoryChange&)> changed_;
  std::atomic<bool> is_watching_{false};
  int inotify_ = -1, end_ = -1;
  NamedThread thread_;  // uses the others
};

}  // namespace longhaul
