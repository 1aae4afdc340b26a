#include "longhaul/events/file_writer_cache.h"

#include <map>

#include "longhaul/io/files/canonical_directory.h"

namespace longhaul {
namespace {

struct Writers {
  Mutex mutex;
  std::map<std::string, std::weak_ptr<FileWriter>> by_directory GUARDED_BY(mutex);
};

Writers& writers() {
  static auto* const all = new Writers;  // for ever: threads may use it while the process ends
  return *all;
}

std::shared_ptr<FileWriter> open_one(const std::weak_ptr<FileWriter>& held) {
  auto writer = held.lock();
  return writer != nullptr && !writer->is_closed() ? writer : nullptr;
}

std::shared_ptr<FileWriter> find_held(const std::string& directory) {
  MutexLock lock(writers().mutex);
  const auto held = writers().by_directory.find(directory);
  return held != writers().by_directory.end() ? open_one(held->second) : nullptr;
}

// `made`, or the one that another thread made meanwhile.
std::shared_ptr<FileWriter> keep(const std::string& directory, std::shared_ptr<FileWriter> made) {
  MutexLock lock(writers().mutex);
  std::weak_ptr<FileWriter>& held = writers().by_directory[directory];
  if (auto other = open_one(held)) return other;
  held = made;
  return made;
}

}  // namespace

std::shared_ptr<FileWriter> FileWriterCache::get(const std::string& logdir, const FileWriterOptions& options) {
  const std::string directory = canonical_directory(logdir);
  if (auto writer = find_held(directory)) return writer;
  auto made = std::make_shared<FileWriter>(logdir, options);
  return keep(directory, std::move(made));
}

std::shared_ptr<FileWriter> FileWriterCache::find(const std::string& logdir) {
  return find_held(canonical_directory(logdir));
}

void FileWriterCache::clear() {
  MutexLock lock(writers().mutex);
  writers().by_directory.clear();
}

}  // namespace longhaul
