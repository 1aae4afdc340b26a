#include "longhaul/train/saving/directory_probe.h"

#include <fmt/format.h>

#include <random>
#include <set>

#include "longhaul/base/log.h"
#include "longhaul/base/mutex.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/io/records/crc32c.h"

namespace longhaul {
namespace {

std::string new_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

// A file that is there as long as this object.
class Probe {
 public:
  Probe(FileSystem& files, const std::string& directory)
      : files_(files), path_(join_path(directory, std::string(kDirectoryProbe) + new_token())) {
    check_directory_owner(files_, path_);
    try {
      const auto file = files_.create(path_, FileSystem::IfExists::kFail);
      file->append(path_);
      file->flush();
      file->close();
    } catch (...) {
      remove();
      throw;
    }
  }
  ~Probe() { remove(); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  const std::string& path() const { return path_; }

 private:
  void remove() {
    try {
      remove_if_exists(files_, path_);
    } catch (...) {  // also of odd types, from a program's file system
      log_warning("{} could not be removed; a later save tries again: {}", path_, message_of(std::current_exception()));
    }
  }

  FileSystem& files_;
  const std::string path_;
};

// Those of dead processes: a live one removes its own within seconds. What fails here is tried again by a later save.
void sweep(FileSystem& files, const Probe& probe) {
  const std::string directory = directory_name(probe.path());
  try {
    const double now = files.modified_at(probe.path());
    for (const std::string& name : names_in(files, directory)) {
      const std::string path = join_path(directory, name);
      if (!name.starts_with(kDirectoryProbe) || path == probe.path()) continue;
      if (now - files.modified_at(path) > kStaleProbe) remove_if_exists(files, path);
    }
  } catch (const Error& error) {
    log_debug("{} could not be searched for old probes: {}", directory, error.what());
  }
}

SeenFile seen_here(FileSystem& files, const std::string& path) {
  constexpr size_t kPiece = 1 << 20;
  const auto file = files.open(path);
  SeenFile seen{.is_there = true};
  std::string piece(kPiece, '\0');
  for (size_t count = kPiece; count == kPiece; seen.bytes += count) {
    count = file->read(seen.bytes, piece.data(), piece.size());
    seen.crc = extend_crc32c(seen.crc, std::string_view(piece).substr(0, count));
  }
  return seen;
}

// The directories of which the log has said that a task does not see them.
struct ToldDirectories {
  Mutex mutex;
  std::set<std::string> names GUARDED_BY(mutex);
};

bool is_first_time(const std::string& directory) {
  static ToldDirectories* const told = new ToldDirectories;  // never destroyed
  constexpr size_t kMostTold = 100;
  const MutexLock lock(told->mutex);
  return told->names.size() < kMostTold && told->names.insert(directory).second;
}

// In which way the task cannot do with the file what this process can; "" if it can.
std::string difference(const SeenFile& here, const SeenFile& there, const std::string& name) {
  if (!there.is_there) return there.why;
  if (there.bytes != here.bytes || there.crc != here.crc) return "another file is under the name " + name;
  return there.why_read_only.empty() ? "" : "it may not write there: " + there.why_read_only;
}

void tell_unseen(const std::string& directory, const std::string& task, const std::string& why) {
  if (!is_first_time(directory)) return;
  log_info(
      "{} does not see {} as this process does ({}): the values of checkpoints there travel between this process and "
      "the tasks. On a directory that all tasks share, each would read and write its own",
      task, directory, why);
}

}  // namespace

bool see_file(TaskSnapshots& session, const std::vector<std::string>& tasks, FileSystem& files, const std::string& path,
              LookFor purpose) {
  const SeenFile here = seen_here(files, path);
  const std::vector<SeenFile> there = session.look(tasks, canonical_prefix(path), purpose);
  for (size_t i = 0; i < tasks.size(); ++i) {
    const std::string why = difference(here, there.at(i), base_name(path));
    if (why.empty()) continue;
    tell_unseen(directory_name(path), tasks[i], why);
    return false;
  }
  return true;
}

bool see_directory(TaskSnapshots& session, const std::vector<std::string>& tasks, FileSystem& files,
                   const std::string& directory) {
  const Probe probe(files, directory);
  sweep(files, probe);
  return see_file(session, tasks, files, probe.path(), LookFor::kWrite);
}

}  // namespace longhaul
