#include <fmt/format.h>

#include <random>
#include <set>

#include "longhaul/base/mutex.h"
#include "longhaul/io/files/file.h"

namespace longhaul {

namespace {

struct Register {
  Mutex mutex;
  std::set<std::string, std::less<>> names GUARDED_BY(mutex);
};

// A thread that outlives main() may still be writing.
Register& all() {
  static auto* const temporaries = new Register;
  return *temporaries;
}

std::string temporary_name(const std::string& path) {
  std::random_device random;
  return fmt::format("{}.tmp{:08x}{:08x}", path, random(), random());
}

// That this process writes it, for as long as this lives.
class TemporaryUnderWay {
 public:
  explicit TemporaryUnderWay(const std::string& path) : name_(base_name(path)) {
    MutexLock lock(all().mutex);
    all().names.insert(name_);
  }
  ~TemporaryUnderWay() {
    MutexLock lock(all().mutex);
    all().names.erase(name_);
  }
  TemporaryUnderWay(const TemporaryUnderWay&) = delete;
  TemporaryUnderWay& operator=(const TemporaryUnderWay&) = delete;

 private:
  const std::string name_;
};

void write_and_sync(FileSystem& files, const std::string& path, std::string_view contents) {
  auto file = files.create(path, FileSystem::IfExists::kFail);
  file->append(contents);
  file->sync();
  file->close();
}

void remove_quietly(FileSystem& files, const std::string& path) {
  try {
    files.remove(path);
  } catch (...) {  // the error that led here is the one to throw
  }
}

}  // namespace

std::string read_file(FileSystem& files, const std::string& path, uint64_t max_bytes) {
  auto file = files.open(path);
  uint64_t size = file->size();
  if (size > max_bytes)
    throw ResourceExhaustedError(
        fmt::format("read {}: the file has {} bytes, but at most {} are allowed", path, size, max_bytes));
  std::string contents(size, '\0');
  contents.resize(file->read(0, contents.data(), contents.size()));
  return contents;
}

void write_file_atomically(FileSystem& files, const std::string& path, std::string_view contents) {
  const std::string temporary = temporary_name(path);
  const TemporaryUnderWay under_way(temporary);
  try {
    write_and_sync(files, temporary, contents);
    files.rename(temporary, path);
  } catch (...) {
    remove_quietly(files, temporary);
    throw;
  }
  files.sync_directory(directory_name(path));
}

bool is_own_temporary(std::string_view name) {
  MutexLock lock(all().mutex);
  return all().names.contains(name);
}

}  // namespace longhaul
